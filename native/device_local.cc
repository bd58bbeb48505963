#include "device_local.h"

#include <algorithm>
#include <cmath>

#include "device_decode.h"
#include "rng.h"
#include "search.h"

namespace regal {
namespace {

double knobs[32]={0,0,0,0,0,0,0,0,0,0,0,.5,5,.3,.1,.4,.3,.003};
class LocalSearch {
 public:
  LocalSearch(const CompactDevices& problem, const DeviceLocalSettings& settings,
              const std::atomic<bool>& cancelled)
      : p_(problem),
        settings_(settings),
        deadline_(settings.stop.seconds, cancelled),
        rng_(settings.seed, 0),
        layout_(*problem.source, settings.decoder),
        decoder_(problem, settings.objective, settings.decoder),
        genes_(settings.start) {}

  DeviceLocalResult run();

 private:
  void find_critical();
  int32_t draw_op();
  void draw_region(int32_t op);
  void change();
  void set(int64_t gene, uint32_t key) {
    undo_.emplace_back(gene, genes_[gene]);
    genes_[gene] = key;
  }

  const CompactDevices& p_;
  const DeviceLocalSettings& settings_;
  Deadline deadline_;
  Rng rng_;
  GeneLayout layout_;
  ScheduleDecoder decoder_;
  Genes genes_;
  Score score_;
  std::vector<int32_t> device_;
  std::vector<int32_t> critical_;
  std::vector<int32_t> region_;
  std::vector<std::pair<int64_t, uint32_t>> undo_;
};

void LocalSearch::find_critical() {
  const Timeline& line = decoder_.timeline();
  critical_.clear();
  device_.resize(p_.n_ops());
  std::vector<int32_t> before(p_.n_ops(), -1);
  int32_t last = -1;
  for (int32_t v = 0; v < p_.n_ops(); ++v) {
    device_[v] = line.device_of(v);
    if (last < 0 || line.finish_of(v) > line.finish_of(last)) last = v;
  }
  for (int32_t d = 0; d < p_.n_devices(); ++d) {
    for (int32_t v = line.first_on(d); v >= 0; v = line.next_of(v)) {
      if (line.next_of(v) >= 0) before[line.next_of(v)] = v;
    }
  }
  std::vector<int32_t> sent_before(line.sent().size(), -1);
  const bool cont = p_.source->has_contention;
  if (cont) for (int32_t a = 0; a < p_.n_devices(); ++a) for (int32_t b = 0; b < p_.n_devices(); ++b) {
    if (a == b) continue;
    for (int32_t k = line.first_over(a, b); k >= 0; k = line.next_sent(k)) if (line.next_sent(k) >= 0) sent_before[line.next_sent(k)] = k;
  }
  // (tensor, target) -> send
  std::vector<std::pair<int64_t, int32_t>> at;
  for (size_t k = 0; k < line.sent().size(); ++k) at.emplace_back(static_cast<int64_t>(line.sent()[k].tensor) * p_.n_devices() + line.sent()[k].target, k);
  std::sort(at.begin(), at.end());
  if (settings_.objective.per_byte > 0) {
    const auto& meter = *decoder_.meter();
    const int64_t now = meter.peak_time();
    const int32_t dp = meter.peak_device();
    for (int32_t t = 0; t < p_.n_tensors(); ++t) {
      if (p_.source->storage[t] < 0) continue;
      const int32_t u = p_.source->producer[t];
      int64_t end = 0;
      int32_t reader = -1;
      bool here = line.maker_of(t) == dp && (u < 0 || line.start_of(u) <= now);
      for (const int32_t w : p_.source->readers[t]) if (device_[w] == dp && line.finish_of(w) > end) { end = line.finish_of(w); reader = w; }
      auto it = std::lower_bound(at.begin(), at.end(), std::pair<int64_t, int32_t>(static_cast<int64_t>(t) * p_.n_devices() + dp, -1));
      if (!here && it != at.end() && it->first == static_cast<int64_t>(t) * p_.n_devices() + dp) here = line.sent()[it->second].start <= now;
      if (!here) continue;
      if (line.maker_of(t) == dp) for (auto k = std::lower_bound(at.begin(), at.end(), std::pair<int64_t, int32_t>(static_cast<int64_t>(t) * p_.n_devices(), -1)); k != at.end() && k->first < static_cast<int64_t>(t + 1) * p_.n_devices(); ++k) if (line.sent()[k->second].end > end) end = line.sent()[k->second].end;
      if (u >= 0 && line.finish_of(u) > end) end = line.finish_of(u);
      if (end <= now && !p_.source->is_output[t]) continue;
      if (u >= 0) critical_.push_back(u);
      if (reader >= 0) critical_.push_back(reader);
    }
    return;
  }
  int32_t v = last;
  while (v >= 0) {
    critical_.push_back(v);
    const int64_t start = line.start_of(v);
    if (start == 0) break;
    int32_t next = -1;
    const bool prefer_lane = rng_.next() & 1;
    if (prefer_lane && before[v] >= 0 && line.finish_of(before[v]) == start) { v = before[v]; continue; }
    for (const int32_t t : p_.reads(v)) {
      const int32_t u = p_.source->producer[t];
      if (line.maker_of(t) == device_[v]) {
        if (u >= 0 && line.finish_of(u) == start) next = u;
        continue;
      }
      auto it = std::lower_bound(at.begin(), at.end(), std::pair<int64_t, int32_t>(static_cast<int64_t>(t) * p_.n_devices() + device_[v], -1));
      int32_t k = it->second;
      if (line.sent()[k].end != start) continue;
      while (true) {
        const auto& s = line.sent()[k];
        const int32_t w = p_.source->producer[s.tensor];
        if (w >= 0 && line.finish_of(w) == s.start) { next = w; break; }
        if (sent_before[k] < 0 || line.sent()[sent_before[k]].end != s.start) break;
        k = sent_before[k];
        if (w >= 0) critical_.push_back(w);
      }
      if (next >= 0) break;
    }
    if (next < 0) for (const int32_t u : p_.controls(v)) {
      if (line.finish_of(u) + p_.source->latency[device_[u] * p_.n_devices() + device_[v]] == start) next = u;
    }
    if (next < 0 && before[v] >= 0 && line.finish_of(before[v]) == start) next = before[v];
    v = next;
  }
}

int32_t LocalSearch::draw_op() {
  if (!critical_.empty() && rng_.uniform() < .5) return critical_[rng_.below(critical_.size())];
  return rng_.below(p_.n_ops());
}

void LocalSearch::draw_region(int32_t op) {
  region_.assign(1, op);
  const int32_t most = 1 + static_cast<int32_t>(-std::log1p(-rng_.uniform()) * knobs[12]);
  for (int32_t tries = 0; tries < 3 * most && static_cast<int32_t>(region_.size()) < most; ++tries) {
    const int32_t from = region_[rng_.below(region_.size())];
    const auto row = rng_.next() & 1 ? p_.successors(from) : p_.source->predecessors[from];
    if (row.empty()) continue;
    const int32_t to = row[rng_.below(row.size())];
    if (std::find(region_.begin(), region_.end(), to) == region_.end()) region_.push_back(to);
  }
}

void LocalSearch::change() {
  const int32_t op = draw_op();
  draw_region(op);
  const int32_t devices = p_.n_devices();
  const double kind = rng_.uniform();
  if (kind < knobs[13] && devices > 1) {
    int32_t target = rng_.below(devices - 1);
    if (target >= device_[op]) ++target;
    for (const int32_t v : region_) {
      if (!p_.may_run(v)[target]) continue;
      const int64_t row = layout_.affinity + static_cast<int64_t>(p_.source->group[v]) * devices;
      for (int32_t d = 0; d < devices; ++d) set(row + d, d == target ? 0xffffffff : kNeutralKey);
    }
  } else if (kind < knobs[13] + knobs[14] && devices > 1) {
    for (const int32_t v : region_) {
      const int64_t row = layout_.affinity + static_cast<int64_t>(p_.source->group[v]) * devices;
      for (int32_t d = 0; d < devices; ++d) set(row + d, kNeutralKey);
    }
  } else if (kind < knobs[13] + knobs[14] + knobs[15]) {
    const auto shift = static_cast<int64_t>((rng_.uniform() - 0.5) * knobs[16] * 0x1.0p32);
    for (const int32_t v : region_) {
      const int64_t key = static_cast<int64_t>(genes_[layout_.priority + v]) + shift;
      set(layout_.priority + v, static_cast<uint32_t>(std::clamp<int64_t>(key, 0, 0xffffffff)));
    }
  } else {
    for (const int32_t v : region_) {
      set(layout_.priority + v, static_cast<uint32_t>(rng_.next()));
      if (layout_.wait > layout_.colocation) set(layout_.colocation + v, static_cast<uint32_t>(rng_.next()));
      const int64_t row = layout_.affinity + static_cast<int64_t>(p_.source->group[v]) * devices;
      for (int32_t d = 0; d < devices; ++d) set(row + d, static_cast<uint32_t>(rng_.next()));
    }
  }
}

DeviceLocalResult LocalSearch::run() {
  DeviceLocalResult result;
  score_ = decoder_.decode(genes_);
  find_critical();
  result.found = {decoder_.schedule(), score_, 1};
  result.genes = genes_;
  double temperature = 0;
  while (result.found.evaluations < settings_.stop.evaluations && !settings_.stop.is_reached(result.found.score) && !deadline_.has_passed()) {
    undo_.clear();
    change();
    const Score score = decoder_.decode(genes_);
    ++result.found.evaluations;
    if (settings_.is_annealing) temperature = knobs[17] * result.found.score.value * (1 - static_cast<double>(result.found.evaluations) / settings_.stop.evaluations);
    const bool ok = score.overflow == score_.overflow && temperature > 0 && score.value > score_.value
      ? rng_.uniform() < std::exp((score_.value - score.value) / temperature) : !score_.is_better_than(score);
    if (!ok) {
      for (auto it = undo_.rbegin(); it != undo_.rend(); ++it) genes_[it->first] = it->second;
      continue;
    }
    score_ = score;
    find_critical();
    if (score.is_better_than(result.found.score)) {
      result.found.schedule = decoder_.schedule();
      result.found.score = score;
      result.genes = genes_;
    }
  }
  return result;
}

}  // namespace

DeviceLocalResult run_device_local(const CompactDevices& problem, const DeviceLocalSettings& settings,
                                   const std::atomic<bool>& cancelled) {
  return LocalSearch(problem, settings, cancelled).run();
}

}  // namespace regal
