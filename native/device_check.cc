#include "device_check.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace regal {
namespace {

constexpr ScheduleVerdict kGood{};

bool is_index(int64_t value, int64_t rows) { return value >= 0 && value < rows; }

class Judge {
 public:
  Judge(const DeviceProblem& problem, const DeviceSchedule& schedule, DeviceFigures& figures)
      : p_(problem), s_(schedule), f_(figures), n_(problem.n_ops), devices_(problem.n_devices) {}

  ScheduleVerdict judge(std::span<const int64_t> in_place) {
    f_ = {};
    ScheduleVerdict verdict = judge_placement();
    if (verdict.fault == ScheduleFault::None) verdict = judge_order();
    if (verdict.fault == ScheduleFault::None) verdict = judge_homes();
    if (verdict.fault == ScheduleFault::None) verdict = judge_sends();
    if (verdict.fault == ScheduleFault::None) verdict = judge_times();
    if (verdict.fault != ScheduleFault::None) return verdict;
    collect_touches();
    verdict = judge_in_place(in_place);
    if (verdict.fault == ScheduleFault::None) weigh();
    return verdict;
  }

 private:
  ScheduleVerdict judge_placement() const {
    if (static_cast<int64_t>(s_.placement.size()) != n_) return {ScheduleFault::BadPlacement, -1, -1};
    for (int64_t v = 0; v < n_; ++v) {
      const int64_t d = s_.placement[v];
      if (!is_index(d, devices_) || p_.duration[v * devices_ + d] == kForbidden) {
        return {ScheduleFault::BadPlacement, v, d};
      }
    }
    std::map<int32_t, int64_t> first_of;
    for (int64_t v = 0; v < n_; ++v) {
      const int64_t first = first_of.try_emplace(p_.group[v], v).first->second;
      if (s_.placement[v] != s_.placement[first]) return {ScheduleFault::NotColocated, v, first};
    }
    return kGood;
  }

  ScheduleVerdict judge_order() {
    if (static_cast<int64_t>(s_.order.size()) != n_) return {ScheduleFault::NotAPermutation, -1, -1};
    rank_.assign(n_, -1);
    for (int64_t i = 0; i < n_; ++i) {
      const int64_t v = s_.order[i];
      if (!is_index(v, n_) || rank_[v] >= 0) return {ScheduleFault::NotAPermutation, v, -1};
      rank_[v] = i;
    }
    for (int64_t v = 0; v < n_; ++v) {
      for (const int32_t t : p_.reads[v]) {
        const int64_t maker = p_.producer[t];
        if (maker >= 0 && rank_[maker] >= rank_[v]) return {ScheduleFault::ReaderTooEarly, v, maker};
      }
      for (const int32_t earlier : p_.control[v]) {
        if (rank_[earlier] >= rank_[v]) return {ScheduleFault::ReaderTooEarly, v, earlier};
      }
    }
    return kGood;
  }

  bool is_read_on(int64_t t, int64_t device) const {
    const auto readers = p_.readers[t];
    return std::any_of(readers.begin(), readers.end(),
                       [&](int32_t v) { return s_.placement[v] == device; });
  }

  ScheduleVerdict judge_homes() {
    const int64_t tensors = p_.n_tensors;
    if (static_cast<int64_t>(s_.home.size()) != tensors) return {ScheduleFault::BadHome, -1, -1};
    made_on_.resize(tensors);
    for (int64_t t = 0; t < tensors; ++t) {
      const int64_t home = s_.home[t];
      bool is_good = home == -1;
      if (p_.producer[t] < 0) is_good = p_.readers[t].empty() ? home == 0 : is_read_on(t, home);
      if (!is_good) return {ScheduleFault::BadHome, t, home};
      made_on_[t] = p_.producer[t] < 0 ? home : s_.placement[p_.producer[t]];
    }
    return kGood;
  }

  ScheduleVerdict judge_sends() {
    for (size_t k = 0; k < s_.sends.size(); ++k) {
      const Send& send = s_.sends[k];
      const auto row = static_cast<int64_t>(k);
      const bool is_useful = is_index(send.tensor, p_.n_tensors) && send.source == made_on_[send.tensor] &&
                             send.target != send.source && is_read_on(send.tensor, send.target);
      if (!is_useful) return {ScheduleFault::SendUseless, row, -1};
      const auto [other, is_new] = send_to_.try_emplace({send.tensor, send.target}, row);
      if (!is_new) return {ScheduleFault::SendTwice, row, other->second};
    }
    for (int64_t t = 0; t < p_.n_tensors; ++t) {
      for (const int32_t v : p_.readers[t]) {
        const int64_t d = s_.placement[v];
        if (d != made_on_[t] && !send_to_.contains({t, d})) return {ScheduleFault::SendMissing, t, v};
      }
    }
    return kGood;
  }

  // Node: op v is v, send k is n + k.
  struct Wait {
    int64_t node;
    int64_t on;
    int64_t lag;
    bool operator<(const Wait& other) const { return node < other.node; }
  };

  std::vector<Wait> all_waits() const {
    std::vector<Wait> waits;
    std::map<int64_t, int64_t> last_on_device;
    for (const int32_t v : s_.order) {
      const auto [last, is_first] = last_on_device.try_emplace(s_.placement[v], v);
      if (!is_first) waits.push_back({v, std::exchange(last->second, v), 0});
    }
    std::map<std::pair<int64_t, int64_t>, int64_t> last_on_link;
    for (size_t k = 0; k < s_.sends.size(); ++k) {
      const Send& send = s_.sends[k];
      const int64_t node = n_ + static_cast<int64_t>(k);
      if (p_.producer[send.tensor] >= 0) waits.push_back({node, p_.producer[send.tensor], 0});
      if (!p_.has_contention) continue;
      const auto [last, is_first] = last_on_link.try_emplace({send.source, send.target}, node);
      if (!is_first) waits.push_back({node, std::exchange(last->second, node), 0});
    }
    for (int64_t t = 0; t < p_.n_tensors; ++t) {
      for (const int32_t v : p_.readers[t]) {
        const int64_t d = s_.placement[v];
        if (d != made_on_[t]) {
          waits.push_back({v, n_ + send_to_.at({t, d}), 0});
        } else if (p_.producer[t] >= 0) {
          waits.push_back({v, p_.producer[t], 0});
        }
      }
    }
    for (int64_t v = 0; v < n_; ++v) {
      for (const int32_t earlier : p_.control[v]) {
        waits.push_back({v, earlier, p_.latency[s_.placement[earlier] * devices_ + s_.placement[v]]});
      }
    }
    std::sort(waits.begin(), waits.end());
    return waits;
  }

  int64_t duration_of(int64_t node) const {
    if (node < n_) return p_.duration[node * devices_ + s_.placement[node]];
    const Send& send = s_.sends[node - n_];
    const int64_t link = p_.link_class[send.source * devices_ + send.target];
    return p_.transfer[link * p_.n_tensors + send.tensor];
  }

  // Depth first: a node starts when all that it waits for has ended.
  ScheduleVerdict judge_times() {
    const std::vector<Wait> waits = all_waits();
    const int64_t nodes = n_ + static_cast<int64_t>(s_.sends.size());
    std::vector<int64_t> start(nodes, 0), end(nodes, -1), next(nodes);
    std::vector<uint8_t> is_open(nodes, 0);
    for (int64_t node = 0; node < nodes; ++node) {
      next[node] = std::lower_bound(waits.begin(), waits.end(), Wait{node, 0, 0}) - waits.begin();
    }
    std::vector<int64_t> path;
    for (int64_t root = 0; root < nodes; ++root) {
      if (end[root] >= 0) continue;
      path.push_back(root);
      is_open[root] = 1;
      while (!path.empty()) {
        const int64_t node = path.back();
        const auto row = static_cast<size_t>(next[node]);
        if (row == waits.size() || waits[row].node != node) {
          end[node] = start[node] + duration_of(node);
          is_open[node] = 0;
          path.pop_back();
        } else if (const Wait& wait = waits[row]; end[wait.on] >= 0) {
          start[node] = std::max(start[node], end[wait.on] + wait.lag);
          ++next[node];
        } else if (is_open[wait.on]) {
          // A link alone has no circle: some op is on it.
          const auto first = std::find(path.begin(), path.end(), wait.on);
          return {ScheduleFault::Circle, *std::min_element(first, path.end()), -1};
        } else {
          path.push_back(wait.on);
          is_open[wait.on] = 1;
        }
      }
    }
    f_.op_start.assign(start.begin(), start.begin() + n_);
    f_.op_end.assign(end.begin(), end.begin() + n_);
    f_.send_start.assign(start.begin() + n_, start.end());
    f_.send_end.assign(end.begin() + n_, end.end());
    for (const int64_t op_end : f_.op_end) f_.time = std::max(f_.time, op_end);
    return kGood;
  }

  // Something that needs the instance of a storage on a device from `start` to `end`.
  struct Touch {
    int64_t storage;
    int64_t device;
    int64_t start;
    int64_t end;
    int64_t op;     // else -1
    bool is_birth;  // the instance begins here at the latest
    auto instance() const { return std::pair{storage, device}; }
  };

  void collect_touches() {
    for (int64_t t = 0; t < p_.n_tensors; ++t) {
      const int64_t storage = p_.storage[t];
      if (storage < 0) continue;
      const int64_t maker = p_.producer[t];
      if (maker < 0) touches_.push_back({storage, made_on_[t], 0, 0, -1, true});
      if (maker >= 0) {
        touches_.push_back({storage, made_on_[t], f_.op_start[maker], f_.op_end[maker], maker, true});
      }
      for (const int32_t v : p_.readers[t]) {
        touches_.push_back({storage, s_.placement[v], f_.op_start[v], f_.op_end[v], v, false});
      }
      if (p_.is_output[t]) touches_.push_back({storage, made_on_[t], f_.time, f_.time, -1, false});
    }
    for (size_t k = 0; k < s_.sends.size(); ++k) {
      const Send& send = s_.sends[k];
      const int64_t storage = p_.storage[send.tensor];
      if (storage < 0) continue;
      touches_.push_back({storage, send.source, f_.send_start[k], f_.send_end[k], -1, false});
      touches_.push_back({storage, send.target, f_.send_start[k], f_.send_end[k], -1, true});
    }
    std::sort(touches_.begin(), touches_.end(),
              [](const Touch& a, const Touch& b) { return a.instance() < b.instance(); });
  }

  std::span<const Touch> touches_of(int64_t storage, int64_t device) const {
    const std::pair wanted{storage, device};
    const auto first = std::partition_point(touches_.begin(), touches_.end(),
                                            [&](const Touch& t) { return t.instance() < wanted; });
    const auto last = std::partition_point(first, touches_.end(),
                                           [&](const Touch& t) { return t.instance() == wanted; });
    return {first, last};
  }

  bool is_allowed(int64_t op, int64_t in, int64_t out) const {
    if (!is_index(op, n_)) return false;
    const auto rows = p_.in_place.begin();
    return std::any_of(rows + p_.in_place_of[op], rows + p_.in_place_of[op + 1],
                       [&](const InPlace& pair) { return pair.in == in && pair.out == out; });
  }

  ScheduleVerdict judge_in_place(std::span<const int64_t> rows) {
    std::map<std::pair<int64_t, int64_t>, int64_t> taken_by, takes;  // (device, storage) -> row
    for (size_t i = 0; i + 2 < rows.size(); i += 3) {
      const auto row = static_cast<int64_t>(i / 3);
      const int64_t op = rows[i], in = rows[i + 1], out = rows[i + 2];
      if (!is_allowed(op, in, out)) return {ScheduleFault::InPlaceNotAllowed, row, -1};
      const int64_t here = s_.placement[op];
      const auto [before, is_free] = taken_by.try_emplace({here, in}, row);
      if (!is_free) return {ScheduleFault::InPlaceTwice, row, before->second};
      const auto [taker, is_new] = takes.try_emplace({here, out}, row);
      if (!is_new) return {ScheduleFault::InPlaceTwice, row, taker->second};
      for (const Touch& touch : touches_of(in, here)) {
        if (touch.op != op && touch.end > f_.op_start[op]) return {ScheduleFault::InPlaceNotLast, row, touch.op};
      }
      for (const Touch& touch : touches_of(out, here)) {
        if (touch.op != op && touch.start < f_.op_end[op]) return {ScheduleFault::InPlaceNotLast, row, touch.op};
      }
      f_.in_place.push_back(
          {static_cast<int32_t>(op), static_cast<int32_t>(in), static_cast<int32_t>(out)});
    }
    return kGood;
  }

  struct Paint {
    int64_t start;
    int64_t end;
    int64_t bytes;
  };

  static int64_t highest(const std::vector<Paint>& layers) {
    std::vector<int64_t> times;
    for (const Paint& layer : layers) times.insert(times.end(), {layer.start, layer.end});
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    const auto at = [&](int64_t time) { return std::lower_bound(times.begin(), times.end(), time) - times.begin(); };
    std::vector<int64_t> change(times.size(), 0);
    for (const Paint& layer : layers) {
      change[at(layer.start)] += layer.bytes;
      change[at(layer.end)] -= layer.bytes;
    }
    int64_t live = 0, peak = 0;
    for (const int64_t bytes : change) peak = std::max(peak, live += bytes);
    return peak;
  }

  void weigh() {
    std::vector<std::vector<Paint>> layers(devices_);
    for (size_t i = 0; i < touches_.size();) {
      const Touch& first = touches_[i];
      int64_t birth = INT64_MAX, death = 0;
      for (; i < touches_.size() && touches_[i].instance() == first.instance(); ++i) {
        if (touches_[i].is_birth) birth = std::min(birth, touches_[i].start);
        death = std::max(death, touches_[i].end);
      }
      if (birth < death) layers[first.device].push_back({birth, death, p_.bytes[first.storage]});
    }
    for (int64_t v = 0; v < n_; ++v) {
      layers[s_.placement[v]].push_back({f_.op_start[v], f_.op_end[v], p_.workspace[v]});
    }
    for (const InPlace& pair : f_.in_place) {
      layers[s_.placement[pair.op]].push_back({f_.op_start[pair.op], f_.op_end[pair.op], -p_.bytes[pair.in]});
    }
    std::set<std::pair<int64_t, int64_t>> held;  // (device, resident)
    f_.resident.assign(devices_, 0);
    for (int64_t v = 0; v < n_; ++v) {
      for (const int32_t r : p_.residents[v]) {
        if (held.emplace(s_.placement[v], r).second) f_.resident[s_.placement[v]] += p_.resident_bytes[r];
      }
    }
    for (int64_t d = 0; d < devices_; ++d) {
      f_.peak.push_back(highest(layers[d]));
      const int64_t used = f_.resident[d] + (p_.capacity_counts_live ? f_.peak[d] : 0);
      f_.overflow += std::max<int64_t>(used - p_.capacity[d], 0);
    }
  }

  const DeviceProblem& p_;
  const DeviceSchedule& s_;
  DeviceFigures& f_;
  int64_t n_;
  int64_t devices_;
  std::vector<int64_t> rank_;     // op -> position in the order
  std::vector<int64_t> made_on_;  // tensor -> device
  std::map<std::pair<int64_t, int64_t>, int64_t> send_to_;  // (tensor, target) -> send
  std::vector<Touch> touches_;                              // sorted by instance
};

}  // namespace

ScheduleVerdict check_schedule(const DeviceProblem& problem, const DeviceSchedule& schedule,
                               std::span<const int64_t> in_place, DeviceFigures& figures) {
  return Judge(problem, schedule, figures).judge(in_place);
}

}  // namespace regal
