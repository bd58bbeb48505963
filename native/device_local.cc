#include "device_local.h"

#include <algorithm>
#include <cmath>

#include "batch.h"
#include "device_critical.h"
#include "device_decode.h"
#include "rng.h"

namespace regal {
namespace {

constexpr int kMostThreads = 256;
// Annealing: moves per op before it begins, so that a short run gets the easy gains; moves per op of
// the first cycle; first temperature as a share of the value; logarithm of first over last.
constexpr int64_t kColdMoves = 2;
constexpr int64_t kFirstCycle = 4;
constexpr double kHottest = 0.01;
constexpr double kCooling = 5;

class LocalSearch {
 public:
  LocalSearch(const CompactDevices& problem, const DeviceLocalSettings& settings,
              const std::atomic<bool>& cancelled)
      : p_(problem),
        settings_(settings),
        layout_(*problem.source, settings.decoder),
        deadline_(settings.stop.seconds, cancelled),
        workers_(std::clamp(settings.threads, 1, kMostThreads)),
        decoders_of_(workers_.count()),
        critical_finder_(problem),
        device_(problem.n_ops()) {
    for (Worker& worker : decoders_of_) {
      worker.decoder = std::make_unique<ScheduleDecoder>(problem, settings.objective, settings.decoder);
      worker.genes.assign(settings.start.begin(), settings.start.end());
    }
  }

  KeySearchResult run();

 private:
  struct Change {
    int64_t gene;
    uint32_t key;
  };
  struct Candidate {
    std::vector<Change> changes;
    Score score;
    bool is_taken = false;
  };
  struct Worker {
    std::unique_ptr<ScheduleDecoder> decoder;
    Genes genes;  // of the current schedule
    std::vector<int32_t> region;
    std::vector<Change> undo;
  };

  bool run_batch();
  void draw(Rng& rng, Worker& worker, std::vector<Change>& changes) const;
  void draw_region(Rng& rng, std::vector<int32_t>& region) const;
  void relocate(Rng& rng, std::span<const int32_t> region, std::vector<Change>& changes) const;
  void set_affinities(int32_t op, int32_t device, std::vector<Change>& changes) const;
  void try_out(Candidate& candidate, int64_t number, Worker& worker);
  bool is_accepted(const Score& score, double chance, int64_t number) const;
  double temperature(int64_t number) const;
  void take(const Candidate& candidate);
  void look(const ScheduleDecoder& decoder);

  const CompactDevices& p_;
  const DeviceLocalSettings& settings_;
  GeneLayout layout_;
  Deadline deadline_;
  Workers workers_;
  std::vector<Worker> decoders_of_;
  CriticalOps critical_finder_;
  std::vector<Candidate> candidates_;
  Score score_;                     // of the current schedule
  std::vector<int32_t> device_;     // per op, in it
  std::vector<int32_t> critical_;   // ops that it hinges on
  KeySearchResult result_;
};

// What moves need to know of the current schedule, which `decoder` decoded last.
void LocalSearch::look(const ScheduleDecoder& decoder) {
  for (int32_t v = 0; v < p_.n_ops(); ++v) device_[v] = decoder.timeline().device_of(v);
  critical_.clear();
  const bool is_about_memory = settings_.objective.per_byte > 0 || score_.overflow > 0;
  if (settings_.objective.per_ns > 0) critical_finder_.add_longest_chain(decoder.timeline(), critical_);
  if (is_about_memory && decoder.meter() != nullptr) {
    critical_finder_.add_peak(decoder.timeline(), *decoder.meter(), critical_);
  }
}

void LocalSearch::draw_region(Rng& rng, std::vector<int32_t>& region) const {
  const bool is_critical = !critical_.empty() && rng.uniform() < settings_.mix.critical;
  region.assign(1, is_critical ? critical_[rng.below(static_cast<uint32_t>(critical_.size()))]
                               : static_cast<int32_t>(rng.below(p_.n_ops())));
  const double size = 1 - std::log1p(-rng.uniform()) * settings_.mix.region;
  const auto most = static_cast<size_t>(std::min<double>(size, p_.n_ops()));
  for (size_t tries = 0; tries < 3 * most && region.size() < most; ++tries) {
    const int32_t from = region[rng.below(static_cast<uint32_t>(region.size()))];
    const auto row = rng.next() >> 63 ? p_.successors(from) : p_.source->predecessors[from];
    if (row.empty()) continue;
    const int32_t to = row[rng.below(static_cast<uint32_t>(row.size()))];
    if (std::ranges::find(region, to) == region.end()) region.push_back(to);
  }
}

// Device -1: neutral.
void LocalSearch::set_affinities(int32_t op, int32_t device, std::vector<Change>& changes) const {
  const int32_t devices = p_.n_devices();
  const bool is_raw = layout_.weight == layout_.size;
  const int64_t row = layout_.affinity + static_cast<int64_t>(p_.source->group[op]) * devices;
  for (int32_t d = 0; d < devices; ++d) {
    changes.push_back({row + d, d == device ? UINT32_MAX : is_raw ? 0 : kNeutralKey});
  }
}

void LocalSearch::relocate(Rng& rng, std::span<const int32_t> region, std::vector<Change>& changes) const {
  auto target = static_cast<int32_t>(rng.below(p_.n_devices() - 1));
  if (target >= device_[region[0]]) ++target;
  for (const int32_t v : region) {
    if (p_.may_run(v)[target]) set_affinities(v, target, changes);
  }
}

void LocalSearch::draw(Rng& rng, Worker& worker, std::vector<Change>& changes) const {
  const MoveMix& mix = settings_.mix;
  const bool is_raw = layout_.weight == layout_.size;
  changes.clear();
  draw_region(rng, worker.region);
  double kind = rng.uniform();
  if (p_.n_devices() == 1) kind = mix.relocate + mix.release + kind * (1 - mix.relocate - mix.release);
  if (kind < mix.relocate) {
    relocate(rng, worker.region, changes);
  } else if (kind < mix.relocate + mix.release && !is_raw) {
    for (const int32_t v : worker.region) set_affinities(v, -1, changes);
  } else if (kind < mix.relocate + mix.release + mix.shift) {
    const auto by = static_cast<int64_t>((rng.uniform() - 0.5) * mix.reach * 0x1.0p32);
    for (const int32_t v : worker.region) {
      const int64_t key = static_cast<int64_t>(worker.genes[layout_.priority + v]) + by;
      changes.push_back({layout_.priority + v, static_cast<uint32_t>(std::clamp<int64_t>(key, 0, UINT32_MAX))});
    }
  } else {
    const auto fresh = [&] { return static_cast<uint32_t>(rng.next() >> 32); };
    for (const int32_t v : worker.region) {
      changes.push_back({layout_.priority + v, fresh()});
      if (!is_raw) changes.push_back({layout_.colocation + v, fresh()});
      const int64_t row = layout_.affinity + static_cast<int64_t>(p_.source->group[v]) * p_.n_devices();
      for (int32_t d = 0; d < p_.n_devices(); ++d) changes.push_back({row + d, fresh()});
    }
  }
}

double LocalSearch::temperature(int64_t number) const {
  int64_t moves = number - kColdMoves * p_.n_ops();
  if (!settings_.is_annealing || moves < 0) return 0;
  int64_t length = kFirstCycle * p_.n_ops();
  for (; moves >= length; length *= 2) moves -= length;
  const double progress = static_cast<double>(moves) / static_cast<double>(length);
  return kHottest * std::abs(result_.found.score.value) * std::exp(-kCooling * progress);
}

bool LocalSearch::is_accepted(const Score& score, double chance, int64_t number) const {
  if (!score_.is_better_than(score)) return true;
  const double heat = temperature(number);
  if (heat <= 0 || score.overflow > score_.overflow) return false;
  return chance < std::exp((score_.value - score.value) / heat);
}

// A worker's genes are those of the current schedule before and after.
void LocalSearch::try_out(Candidate& candidate, int64_t number, Worker& worker) {
  Rng rng(settings_.seed, number);
  draw(rng, worker, candidate.changes);
  worker.undo.clear();
  for (const Change& change : candidate.changes) {
    worker.undo.push_back({change.gene, worker.genes[change.gene]});
    worker.genes[change.gene] = change.key;
  }
  candidate.score = worker.decoder->decode(worker.genes);
  candidate.is_taken = is_accepted(candidate.score, rng.uniform(), number);
  for (size_t i = worker.undo.size(); i-- > 0;) worker.genes[worker.undo[i].gene] = worker.undo[i].key;
}

void LocalSearch::take(const Candidate& candidate) {
  for (Worker& worker : decoders_of_) {
    for (const Change& change : candidate.changes) worker.genes[change.gene] = change.key;
  }
  score_ = candidate.score;
  ScheduleDecoder& decoder = *decoders_of_[0].decoder;
  if (workers_.count() > 1) decoder.decode(decoders_of_[0].genes);
  look(decoder);
  if (!score_.is_better_than(result_.found.score)) return;
  result_.found.score = score_;
  result_.found.schedule = decoder.schedule();
  result_.genes = decoders_of_[0].genes;
}

// Tries moves until one is taken; with several threads, a few at a time. Returns false at the end.
bool LocalSearch::run_batch() {
  DeviceSearchResult& found = result_.found;
  const int64_t base = found.evaluations;
  const auto count = std::min<int64_t>(candidates_.size(), settings_.stop.evaluations - base);
  const int64_t counted = run_numbered(workers_, deadline_, base, count, [&](int64_t i, int worker) {
    try_out(candidates_[i], base + i, decoders_of_[worker]);
    return candidates_[i].is_taken;
  });
  found.evaluations += counted;
  if (counted > 0 && candidates_[counted - 1].is_taken) {
    take(candidates_[counted - 1]);
  } else if (counted < static_cast<int64_t>(candidates_.size())) {
    return false;
  }
  return found.evaluations < settings_.stop.evaluations && !settings_.stop.is_reached(found.score);
}

KeySearchResult LocalSearch::run() {
  Worker& first = decoders_of_[0];
  score_ = first.decoder->decode(first.genes);
  result_.found = {first.decoder->schedule(), score_, 1};
  result_.genes = first.genes;
  if (p_.n_ops() == 0) return result_;
  look(*first.decoder);
  candidates_.resize(workers_.count() == 1 ? 1 : 4 * workers_.count());
  bool goes_on = settings_.stop.evaluations > 1 && !settings_.stop.is_reached(score_);
  while (goes_on) goes_on = run_batch();
  return std::move(result_);
}

}  // namespace

KeySearchResult run_device_local(const CompactDevices& problem, const DeviceLocalSettings& settings,
                                   const std::atomic<bool>& cancelled) {
  return LocalSearch(problem, settings, cancelled).run();
}

}  // namespace regal
