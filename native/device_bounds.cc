#include "device_bounds.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

#include "bounds.h"

namespace regal {
namespace {

constexpr int64_t kNever = INT64_MAX;  // no schedule has the op on this device

int64_t ceil_divide(int64_t value, int64_t by) { return value / by + (value % by != 0 ? 1 : 0); }

std::vector<int32_t> sorted_ops(const DeviceProblem& problem) {
  std::vector<int32_t> order, waiting(problem.n_ops);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    waiting[v] = static_cast<int32_t>(problem.predecessors[v].size());
    if (waiting[v] == 0) order.push_back(v);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (const int32_t w : problem.successors[order[i]]) {
      if (--waiting[w] == 0) order.push_back(w);
    }
  }
  return order;
}

// Per op and device: time that surely passes before the op starts there (heads), and after it
// ended there (tails). Ops of one group are on one device; nothing else is assumed.
class Chains {
 public:
  explicit Chains(const DeviceProblem& problem)
      : p_(problem),
        devices_(problem.n_devices),
        head_(static_cast<size_t>(problem.n_ops) * problem.n_devices, 0),
        tail_(head_.size(), 0) {
    const std::vector<int32_t> order = sorted_ops(problem);
    for (const int32_t v : order) find_heads(v);
    for (auto v = order.rbegin(); v != order.rend(); ++v) find_tails(*v);
  }

  int64_t head(int32_t v, int32_t d) const { return head_[index(v, d)]; }
  int64_t tail(int32_t v, int32_t d) const { return tail_[index(v, d)]; }

 private:
  int64_t index(int32_t v, int32_t d) const { return static_cast<int64_t>(v) * devices_ + d; }

  // The least of before(a) + way(a, b) over the devices a where `other` may be when v is on b.
  template <typename Before, typename Way>
  int64_t least(int32_t v, int32_t other, int32_t b, const Before& before, const Way& way) const {
    int64_t result = kNever;
    for (int32_t a = 0; a < devices_; ++a) {
      if (!p_.may_run_on(other, a) || (p_.group[v] == p_.group[other] && a != b)) continue;
      result = std::min(result, before(a) + (a == b ? 0 : way(a, b)));
    }
    return result;
  }

  void find_heads(int32_t v) {
    for (int32_t d = 0; d < devices_; ++d) {
      if (!p_.may_run_on(v, d)) continue;
      int64_t& head = head_[index(v, d)];
      const auto raise = [&](int32_t u, const auto& way) {
        const auto end = [&](int32_t a) { return head_[index(u, a)] + p_.duration_of(u, a); };
        head = std::max(head, least(v, u, d, end, way));
      };
      for (const int32_t t : p_.reads[v]) {
        const auto way = [&](int32_t a, int32_t b) { return p_.transfer_of(t, a, b); };
        if (p_.producer[t] >= 0) raise(p_.producer[t], way);
      }
      const auto way = [&](int32_t a, int32_t b) { return p_.latency[int64_t{a} * devices_ + b]; };
      for (const int32_t u : p_.control[v]) raise(u, way);
    }
  }

  void find_tails(int32_t v) {
    for (int32_t d = 0; d < devices_; ++d) {
      if (!p_.may_run_on(v, d)) continue;
      int64_t& tail = tail_[index(v, d)];
      const auto raise = [&](int32_t w, const auto& way) {
        const auto rest = [&](int32_t a) { return p_.duration_of(w, a) + tail_[index(w, a)]; };
        tail = std::max(tail, least(v, w, d, rest, [&](int32_t a, int32_t b) { return way(b, a); }));
      };
      for (const int32_t t : p_.writes[v]) {
        const auto way = [&](int32_t a, int32_t b) { return p_.transfer_of(t, a, b); };
        for (const int32_t w : p_.readers[t]) raise(w, way);
      }
      const auto way = [&](int32_t a, int32_t b) { return p_.latency[int64_t{a} * devices_ + b]; };
      for (const int32_t w : p_.successors[v]) {
        const auto controls = p_.control[w];
        if (std::binary_search(controls.begin(), controls.end(), v)) raise(w, way);
      }
    }
  }

  const DeviceProblem& p_;
  int32_t devices_;
  std::vector<int64_t> head_, tail_;
};

// What every schedule spends before, in and after an op, wherever it runs.
struct Window {
  int64_t head;
  int64_t work;
  int64_t tail;
};

int64_t chain_bound(const DeviceProblem& problem, std::vector<Window>& windows) {
  const Chains chains(problem);
  int64_t bound = 0;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    Window least{kNever, kNever, kNever};
    int64_t through = kNever;
    for (int32_t d = 0; d < problem.n_devices; ++d) {
      if (!problem.may_run_on(v, d)) continue;
      const int64_t head = chains.head(v, d), work = problem.duration_of(v, d), tail = chains.tail(v, d);
      through = std::min(through, head + work + tail);
      least = {std::min(least.head, head), std::min(least.work, work), std::min(least.tail, tail)};
    }
    windows.push_back(least);
    bound = std::max(bound, through);
  }
  return bound;
}

// Ops with late heads share the devices after the earliest of these heads, and before the shortest of
// their tails. With `turned`, heads and tails swap roles.
int64_t window_bound(std::vector<Window> windows, int64_t devices, bool turned) {
  if (turned) {
    for (Window& window : windows) std::swap(window.head, window.tail);
  }
  std::sort(windows.begin(), windows.end(), [](const Window& a, const Window& b) { return a.head > b.head; });
  int64_t bound = 0, work = 0, tail = kNever;
  for (const Window& window : windows) {
    work += window.work;
    tail = std::min(tail, window.tail);
    bound = std::max(bound, window.head + ceil_divide(work, devices) + tail);
  }
  return bound;
}

// With prices that sum to 1 per ns of each device, a schedule of length T pays at most T. Each group
// pays at least what it pays on its cheapest device.
class Work {
 public:
  explicit Work(const DeviceProblem& problem) : devices_(problem.n_devices), groups_(problem.n_groups) {
    ns_.assign(static_cast<size_t>(groups_) * devices_, kNever);
    for (int64_t g = 0; g < groups_; ++g) {
      int64_t most = 0, least = kNever;
      for (int32_t d = 0; d < devices_; ++d) {
        if (!problem.may_run[g * devices_ + d]) continue;
        int64_t sum = 0;
        for (const int32_t v : problem.members[g]) sum += problem.duration_of(v, d);
        ns_[g * devices_ + d] = sum;
        most = std::max(most, sum);
        least = std::min(least, sum);
      }
      total_ += most;
      longest_ = std::max(longest_, least);
    }
  }

  int64_t bound() const {
    std::vector<int64_t> price(devices_, 1), load(devices_);
    int64_t best = std::max(longest_, paid(price, load));
    // Prices have so many bits that no sum overflows.
    const int32_t bits = std::min(20, 61 - static_cast<int32_t>(std::bit_width(static_cast<uint64_t>(total_))));
    if (devices_ == 1 || bits < 12) return best;
    std::vector<double> share(devices_, 1.0 / devices_);
    const int64_t rounds = std::min<int64_t>(100, 20'000'000 / (groups_ * devices_ + 1));
    for (int64_t round = 0; round < rounds; ++round) {
      // Devices that many find cheap become dearer.
      const auto most = static_cast<double>(std::max<int64_t>(*std::max_element(load.begin(), load.end()), 1));
      const double step = 0.5 / (1.0 + 0.1 * static_cast<double>(round));
      double sum = 0;
      for (int32_t d = 0; d < devices_; ++d) sum += share[d] *= 1 + step * static_cast<double>(load[d]) / most;
      for (int32_t d = 0; d < devices_; ++d) {
        share[d] /= sum;
        price[d] = std::max<int64_t>(1, static_cast<int64_t>(share[d] * static_cast<double>(int64_t{1} << (bits - 1))));
      }
      best = std::max(best, paid(price, load));
    }
    return best;
  }

 private:
  // The bound of these prices; `load`: the work that finds each device cheapest.
  int64_t paid(const std::vector<int64_t>& price, std::vector<int64_t>& load) const {
    std::fill(load.begin(), load.end(), 0);
    int64_t sum = 0;
    for (int64_t g = 0; g < groups_; ++g) {
      int64_t least = kNever;
      int32_t cheapest = 0;
      for (int32_t d = 0; d < devices_; ++d) {
        const int64_t ns = ns_[g * devices_ + d];
        if (ns == kNever || price[d] * ns >= least) continue;
        least = price[d] * ns;
        cheapest = d;
      }
      sum += least;
      load[cheapest] += ns_[g * devices_ + cheapest];
    }
    return ceil_divide(sum, std::accumulate(price.begin(), price.end(), int64_t{0}));
  }

  int32_t devices_;
  int64_t groups_;
  std::vector<int64_t> ns_;  // [group * devices + device], or kNever
  int64_t total_ = 0;        // all groups on their slowest devices
  int64_t longest_ = 0;      // a group on its fastest
};

// What must lie on the device of an op while it runs: all that it reads and writes, less what its
// in-place pairs can save at most, plus its workspace.
int64_t bytes_around(const DeviceProblem& problem, int32_t v) {
  std::vector<int32_t> touched;
  for (const auto tensors : {problem.reads[v], problem.writes[v]}) {
    for (const int32_t t : tensors) {
      if (problem.storage[t] >= 0) touched.push_back(problem.storage[t]);
    }
  }
  const auto bytes_of = [&](std::vector<int32_t>& storages) {
    std::sort(storages.begin(), storages.end());
    storages.erase(std::unique(storages.begin(), storages.end()), storages.end());
    int64_t bytes = 0;
    for (const int32_t s : storages) bytes += problem.bytes[s];
    return bytes;
  };
  std::vector<int32_t> ins, outs;
  for (int64_t i = problem.in_place_of[v]; i < problem.in_place_of[v + 1]; ++i) {
    ins.push_back(problem.in_place[i].in);
    outs.push_back(problem.in_place[i].out);
  }
  return bytes_of(touched) - std::min(bytes_of(ins), bytes_of(outs)) + problem.workspace[v];
}

// Whether the tensors of a storage hang together: see one_device_relaxation.
bool hangs_together(const DeviceProblem& problem, int32_t storage) {
  int32_t root_maker = -2;
  for (const int32_t t : problem.tensors_of[storage]) {
    const int32_t maker = problem.producer[t];
    bool is_root = true;
    if (maker >= 0) {
      for (const int32_t read : problem.reads[maker]) is_root = is_root && problem.storage[read] != storage;
    }
    if (!is_root) continue;
    if (root_maker != -2 && root_maker != maker) return false;
    root_maker = maker;
  }
  return true;
}

}  // namespace

int64_t device_time_bound(const DeviceProblem& problem) {
  if (problem.n_ops == 0) return 0;
  std::vector<Window> windows;
  int64_t bound = chain_bound(problem, windows);
  for (const bool turned : {false, true}) {
    bound = std::max(bound, window_bound(windows, problem.n_devices, turned));
  }
  return std::max(bound, Work(problem).bound());
}

OrderProblem one_device_relaxation(const DeviceProblem& problem) {
  std::vector<int64_t> edges, touches, bytes, inputs, outputs, in_place;
  std::vector<int64_t> row_of(problem.n_storages, -1);
  for (int32_t s = 0; s < problem.n_storages; ++s) {
    if (!hangs_together(problem, s)) continue;
    row_of[s] = static_cast<int64_t>(bytes.size());
    bytes.push_back(problem.bytes[s]);
    const auto tensors = problem.tensors_of[s];
    const auto is_given = [&](int32_t t) { return problem.producer[t] < 0; };
    const auto is_kept = [&](int32_t t) { return problem.is_output[t] != 0; };
    if (std::any_of(tensors.begin(), tensors.end(), is_given)) inputs.push_back(row_of[s]);
    if (std::any_of(tensors.begin(), tensors.end(), is_kept)) outputs.push_back(row_of[s]);
  }
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    for (const int32_t u : problem.predecessors[v]) edges.insert(edges.end(), {u, v});
    for (const auto tensors : {problem.reads[v], problem.writes[v]}) {
      for (const int32_t t : tensors) {
        const int64_t row = problem.storage[t] >= 0 ? row_of[problem.storage[t]] : -1;
        if (row >= 0) touches.insert(touches.end(), {v, row});
      }
    }
  }
  for (const InPlace& pair : problem.in_place) {
    if (row_of[pair.in] < 0 || row_of[pair.out] < 0) continue;
    in_place.insert(in_place.end(), {pair.op, row_of[pair.in], row_of[pair.out]});
  }
  OrderProblem relaxed;
  build_problem({edges, touches, bytes, problem.workspace, inputs, outputs, in_place}, relaxed);
  return relaxed;
}

int64_t device_peak_bound(const DeviceProblem& problem) {
  int64_t bound = 0;
  for (int32_t v = 0; v < problem.n_ops; ++v) bound = std::max(bound, bytes_around(problem, v));
  if (problem.n_ops == 0) return bound;
  return std::max(bound, ceil_divide(peak_bound(one_device_relaxation(problem)), problem.n_devices));
}

}  // namespace regal
