// The several-device model, tick by tick.
#include <algorithm>
#include <set>

#include "fuzz_devices.h"

namespace regal::fuzz {
namespace {

constexpr int64_t kNotYet = -1;

struct Span {
  int64_t start = kNotYet;
  int64_t end = kNotYet;
};

struct Touch {
  Span span;
  int32_t op;  // else -1
  bool makes;
};

class Clock {
 public:
  Clock(const DeviceProblem& problem, const DeviceSchedule& schedule, int64_t tick)
      : p_(problem), s_(schedule), tick_(tick), ops_(problem.n_ops), sends_(schedule.sends.size()) {}

  bool run() {
    // Everything takes at most 3 ticks, and a latency 2.
    const int64_t most = 6 * static_cast<int64_t>(ops_.size() + sends_.size() + p_.control.item.size() + 1);
    for (int64_t now = 0; now <= most; ++now) {
      for (int32_t d = 0; d < p_.n_devices; ++d) start_op(d, now * tick_);
      for (size_t k = 0; k < sends_.size(); ++k) start_send(k, now * tick_);
    }
    const auto is_over = [](const Span& span) { return span.start != kNotYet; };
    return std::all_of(ops_.begin(), ops_.end(), is_over) && std::all_of(sends_.begin(), sends_.end(), is_over);
  }

  void report(DeviceFigures& figures) {
    for (const Span& span : ops_) {
      figures.op_start.push_back(span.start);
      figures.op_end.push_back(span.end);
      time_ = std::max(time_, span.end);
    }
    for (const Span& span : sends_) {
      figures.send_start.push_back(span.start);
      figures.send_end.push_back(span.end);
    }
    figures.time = time_;
    for (int32_t v = 0; v < p_.n_ops; ++v) find_pairs(v, figures.in_place);
    for (int32_t d = 0; d < p_.n_devices; ++d) weigh(d, figures);
  }

 private:
  static bool is_over(const Span& span, int64_t now) { return span.start != kNotYet && span.end <= now; }
  static bool runs(const Span& span, int64_t now) { return span.start != kNotYet && span.end > now; }

  int32_t made_on(int32_t t) const { return p_.producer[t] >= 0 ? s_.placement[p_.producer[t]] : s_.home[t]; }
  bool is_made(int32_t t, int64_t now) const { return p_.producer[t] < 0 || is_over(ops_[p_.producer[t]], now); }

  bool is_here(int32_t t, int32_t d, int64_t now) const {
    if (made_on(t) == d) return is_made(t, now);
    for (size_t k = 0; k < sends_.size(); ++k) {
      if (s_.sends[k].tensor == t && s_.sends[k].target == d && is_over(sends_[k], now)) return true;
    }
    return false;
  }

  void start_op(int32_t d, int64_t now) {
    for (const int32_t v : s_.order) {
      if (s_.placement[v] != d || is_over(ops_[v], now)) continue;
      if (runs(ops_[v], now)) return;
      for (const int32_t t : p_.reads[v]) {
        if (!is_here(t, d, now)) return;
      }
      for (const int32_t u : p_.control[v]) {
        const int64_t wait = p_.latency[int64_t{s_.placement[u]} * p_.n_devices + d];
        if (!is_over(ops_[u], now - wait)) return;
      }
      ops_[v] = {now, now + p_.duration_of(v, d)};
      return;
    }
  }

  void start_send(size_t k, int64_t now) {
    const Send& send = s_.sends[k];
    if (sends_[k].start != kNotYet || !is_made(send.tensor, now)) return;
    for (size_t j = 0; p_.has_contention && j < k; ++j) {
      const bool shares = s_.sends[j].source == send.source && s_.sends[j].target == send.target;
      if (shares && !is_over(sends_[j], now)) return;
    }
    sends_[k] = {now, now + p_.transfer_of(send.tensor, send.source, send.target)};
  }

  std::vector<Touch> touches(int32_t storage, int32_t d) const {
    std::vector<Touch> found;
    for (int32_t t = 0; t < p_.n_tensors; ++t) {
      if (p_.storage[t] != storage) continue;
      const int32_t maker = p_.producer[t];
      if (made_on(t) == d) {
        found.push_back(maker >= 0 ? Touch{ops_[maker], maker, true} : Touch{{0, 0}, -1, true});
        if (p_.is_output[t]) found.push_back({{time_, time_}, -1, false});
      }
      for (int32_t v = 0; v < p_.n_ops; ++v) {
        const auto reads = p_.reads[v];
        const bool is_read = std::find(reads.begin(), reads.end(), t) != reads.end();
        if (is_read && s_.placement[v] == d) found.push_back({ops_[v], v, false});
      }
      for (size_t k = 0; k < sends_.size(); ++k) {
        const Send& send = s_.sends[k];
        if (send.tensor != t || (send.source != d && send.target != d)) continue;
        found.push_back({sends_[k], -1, send.target == d});
      }
    }
    return found;
  }

  void find_pairs(int32_t v, std::vector<InPlace>& happened) const {
    std::set<int32_t> ins, outs;
    for (const InPlace& pair : p_.in_place) {
      if (pair.op != v || ins.contains(pair.in) || outs.contains(pair.out)) continue;
      bool possible = true;
      for (const Touch& touch : touches(pair.in, s_.placement[v])) {
        possible = possible && (touch.op == v || touch.span.end <= ops_[v].start);
      }
      for (const Touch& touch : touches(pair.out, s_.placement[v])) {
        possible = possible && (touch.op == v || touch.span.start >= ops_[v].end);
      }
      if (!possible) continue;
      ins.insert(pair.in);
      outs.insert(pair.out);
      happened.push_back(pair);
    }
  }

  void weigh(int32_t d, DeviceFigures& figures) const {
    int64_t peak = 0;
    for (int64_t now = 0; now < time_; now += tick_) {
      int64_t live = 0;
      for (int32_t s = 0; s < p_.n_storages; ++s) {
        bool began = false, goes_on = false;
        for (const Touch& touch : touches(s, d)) {
          began = began || (touch.makes && touch.span.start <= now);
          goes_on = goes_on || touch.span.end > now;
        }
        if (began && goes_on) live += p_.bytes[s];
      }
      for (int32_t v = 0; v < p_.n_ops; ++v) {
        if (s_.placement[v] != d || now < ops_[v].start || now >= ops_[v].end) continue;
        live += p_.workspace[v];
        for (const InPlace& pair : figures.in_place) live -= pair.op == v ? p_.bytes[pair.in] : 0;
      }
      peak = std::max(peak, live);
    }
    int64_t resident = 0;
    for (int32_t r = 0; r < p_.n_residents; ++r) {
      const auto users = p_.resident_users[r];
      const bool is_used = std::any_of(users.begin(), users.end(), [&](int32_t v) { return s_.placement[v] == d; });
      resident += is_used ? p_.resident_bytes[r] : 0;
    }
    figures.peak.push_back(peak);
    figures.resident.push_back(resident);
    const int64_t used = resident + (p_.capacity_counts_live ? peak : 0);
    figures.overflow += used > p_.capacity[d] ? used - p_.capacity[d] : 0;
  }

  const DeviceProblem& p_;
  const DeviceSchedule& s_;
  int64_t tick_;
  std::vector<Span> ops_, sends_;
  int64_t time_ = 0;
};

}  // namespace

bool slow_devices(const DeviceProblem& problem, const DeviceSchedule& schedule, int64_t tick, DeviceFigures& figures) {
  figures = {};
  Clock clock(problem, schedule, tick);
  if (!clock.run()) return false;
  clock.report(figures);
  return true;
}

}  // namespace regal::fuzz
