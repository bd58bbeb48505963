#include "device_heuristics_splits.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "device_heuristics_ledger.h"

namespace regal {
namespace {

constexpr int64_t kNoWay = INT64_MAX / 2;

}  // namespace

OrderSplitter::OrderSplitter(const DeviceTables& tables, std::span<const int32_t> order,
                             std::span<const int32_t> sequence)
    : tables_(tables), order_(order), sequence_(sequence) {
  const DeviceProblem& problem = tables.problem;
  const int32_t n = problem.n_ops;
  std::vector<int32_t> position(n);
  for (int32_t i = 0; i < n; ++i) position[order[i]] = i;
  for (const int32_t device : sequence) {
    std::vector<int64_t>& work = work_.emplace_back(n + 1, 0);
    for (int32_t i = 0; i < n; ++i) work[i + 1] = work[i] + work_of(order[i], device);
  }

  // What a cut sends is a sum over the tensors that are made before it and read after it.
  traffic_.assign(n + 1, 0);
  live_.assign(n + 1, 0);
  for (int32_t t = 0; t < problem.n_tensors; ++t) {
    int32_t first = problem.producer[t] < 0 ? n : position[problem.producer[t]], last = -1;
    for (const int32_t v : problem.readers[t]) {
      if (problem.producer[t] < 0) first = std::min(first, position[v]);
      last = std::max(last, position[v]);
    }
    if (last <= first) continue;
    traffic_[first + 1] += tables.mean_transfer[t];
    traffic_[last + 1] -= tables.mean_transfer[t];
  }
  made_at_.assign(problem.n_storages, n);
  last_at_.assign(problem.n_storages, -1);
  seen_in_.assign(problem.n_storages, 0);
  for (int32_t i = 0; i < n; ++i) {
    for (const int32_t s : tables.touched[order[i]]) {
      made_at_[s] = std::min(made_at_[s], i);
      last_at_[s] = i;
    }
  }
  for (int32_t s = 0; s < problem.n_storages; ++s) {
    if (last_at_[s] < 0) continue;
    live_[made_at_[s]] += problem.bytes[s];
    live_[tables.stays[s] ? n : last_at_[s] + 1] -= problem.bytes[s];
  }
  for (int32_t i = 0; i < n; ++i) {
    traffic_[i + 1] += traffic_[i];
    live_[i + 1] += live_[i];
  }
  for (int32_t i = 0; i < n; ++i) live_[i] += problem.workspace[order[i]];
  for (int32_t t = 0; t < problem.n_tensors; ++t) {
    if (problem.producer[t] < 0 && problem.storage[t] >= 0) made_at_[problem.storage[t]] = -1;
  }
}

int64_t OrderSplitter::work_of(int32_t op, int32_t device) const {
  if (tables_.problem.may_run_on(op, device)) return tables_.problem.duration_of(op, device);
  return 0;  // it will run elsewhere
}

// The time after which all devices together have done everything, each working at its own speed.
double OrderSplitter::fair_share() const {
  double speed = 0;
  for (const std::vector<int64_t>& work : work_) {
    if (work.back() > 0) speed += 1 / static_cast<double>(work.back());
  }
  return speed > 0 ? 1 / speed : 0;
}

Cuts OrderSplitter::by_work(double fill) const {
  const auto n = static_cast<int32_t>(order_.size());
  Cuts cuts{0};
  const auto share = static_cast<int64_t>(fill * fair_share());
  for (size_t k = 0; k + 1 < sequence_.size(); ++k) {
    const std::vector<int64_t>& work = work_[k];
    const auto begin = work.begin() + cuts.back();
    const auto end = std::upper_bound(begin, work.end(), *begin + share) - 1;
    cuts.push_back(static_cast<int32_t>(end - work.begin()));
  }
  cuts.push_back(n);
  return cuts;
}

// first[i]: where the longest stretch that ends at i and fits on device sequence[k] begins.
void OrderSplitter::fill_windows(size_t k, double most_work, std::vector<int32_t>& first) const {
  const DeviceProblem& problem = tables_.problem;
  const auto n = static_cast<int32_t>(order_.size());
  const int64_t capacity = problem.capacity[sequence_[k]];
  const bool counts_live = problem.capacity_counts_live && capacity != kUnlimited;
  std::vector<int32_t> uses(problem.n_residents, 0);
  std::deque<int32_t> most_live;  // positions of the stretch with ever fewer live bytes
  int64_t resident = 0;
  int32_t begin = 0;
  first[0] = 0;
  for (int32_t i = 0; i < n; ++i) {
    for (const int32_t r : problem.residents[order_[i]]) {
      if (uses[r]++ == 0) resident += problem.resident_bytes[r];
    }
    while (!most_live.empty() && live_[most_live.back()] <= live_[i]) most_live.pop_back();
    most_live.push_back(i);
    const auto is_too_much = [&] {
      const int64_t live = counts_live ? live_[most_live.front()] : 0;
      const auto work = static_cast<double>(work_[k][i + 1] - work_[k][begin]);
      return (work > most_work && begin < i) ||  // one op is never too much work
             (capacity != kUnlimited && resident + live > capacity);
    };
    while (begin <= i && is_too_much()) {
      for (const int32_t r : problem.residents[order_[begin]]) {
        if (--uses[r] == 0) resident -= problem.resident_bytes[r];
      }
      if (most_live.front() == begin) most_live.pop_front();
      ++begin;
    }
    first[i + 1] = begin;
  }
}

Cuts OrderSplitter::by_traffic(double fill) const {
  const auto n = static_cast<int32_t>(order_.size());
  const auto stretches = sequence_.size();
  std::vector<int64_t> cost(n + 1, kNoWay), next(n + 1);
  std::vector<std::vector<int32_t>> from(stretches, std::vector<int32_t>(n + 1));
  std::vector<int32_t> first(n + 1);
  cost[0] = 0;
  for (size_t k = 0; k < stretches; ++k) {
    fill_windows(k, fill * fair_share(), first);
    const std::vector<int64_t>& work = work_[k];
    // Cost of starting the stretch at j, without the work that all its ends have in common.
    const auto start_cost = [&](int32_t j) {
      return cost[j] >= kNoWay ? kNoWay : cost[j] + (j == 0 ? 0 : traffic_[j]) - work[j];
    };
    std::deque<int32_t> best;  // candidates of rising cost
    for (int32_t i = 0; i <= n; ++i) {
      next[i] = cost[i];  // an empty stretch
      from[k][i] = i;
      while (!best.empty() && best.front() < first[i]) best.pop_front();
      if (!best.empty() && start_cost(best.front()) < kNoWay) {
        const int64_t total = start_cost(best.front()) + work[i];
        if (total < next[i]) {
          next[i] = total;
          from[k][i] = best.front();
        }
      }
      while (!best.empty() && start_cost(best.back()) > start_cost(i)) best.pop_back();
      best.push_back(i);
    }
    std::swap(cost, next);
  }
  if (cost[n] >= kNoWay) return {};
  Cuts cuts(stretches + 1, n);
  for (size_t k = stretches; k > 0; --k) cuts[k - 1] = from[k - 1][cuts[k]];
  return cuts;
}

// The most live bytes of a stretch if its device holds nothing else.
int64_t OrderSplitter::bytes_of(int32_t begin, int32_t end) {
  const DeviceProblem& problem = tables_.problem;
  ++probe_;
  int64_t live = 0, most = 0;
  for (int32_t i = begin; i < end; ++i) {
    for (const int32_t s : tables_.touched[order_[i]]) {
      if (seen_in_[s] != probe_ && made_at_[s] < begin) live += problem.bytes[s];
      seen_in_[s] = probe_;
      last_at_[s] = i;
    }
  }
  for (int32_t i = begin; i < end; ++i) {
    for (const int32_t s : tables_.touched[order_[i]]) {
      if (made_at_[s] == i && begin <= i) live += problem.bytes[s];
    }
    most = std::max(most, live + problem.workspace[order_[i]]);
    for (const int32_t s : tables_.touched[order_[i]]) {
      const bool is_kept = tables_.stays[s] && made_at_[s] >= begin;
      if (last_at_[s] == i && !is_kept) live -= problem.bytes[s];
    }
  }
  return most;
}

int32_t OrderSplitter::longest(int32_t begin, int64_t most) {
  const auto n = static_cast<int32_t>(order_.size());
  int32_t fits = begin, step = 1;
  while (fits < n && bytes_of(begin, std::min(fits + step, n)) <= most) {
    fits = std::min(fits + step, n);
    step *= 2;
  }
  for (; step > 0; step /= 2) {
    if (fits + step <= n && bytes_of(begin, fits + step) <= most) fits += step;
  }
  return fits;
}

Cuts OrderSplitter::by_memory() {
  constexpr int kProbes = 12;
  const auto n = static_cast<int32_t>(order_.size());
  int64_t low = 0, high = bytes_of(0, n);
  for (int32_t i = 0; i < n; ++i) low = std::max(low, bytes_of(i, i + 1));
  Cuts best(sequence_.size() + 1, n);
  best[0] = 0;
  int64_t most = low;
  for (int probe = 0; probe < kProbes && low < high; ++probe) {
    Cuts cuts{0};
    for (size_t k = 0; k < sequence_.size(); ++k) cuts.push_back(longest(cuts.back(), most));
    if (cuts.back() == n) {
      best = std::move(cuts);
      high = most;
    } else {
      low = most + 1;
    }
    most = low + (high - low) / 2;
  }
  return best;
}

std::vector<int32_t> OrderSplitter::placement_of(const Cuts& cuts) const {
  MemoryLedger ledger(tables_);
  std::vector<int32_t> placement(tables_.n_ops());
  size_t k = 0;
  for (int32_t i = 0; i < tables_.n_ops(); ++i) {
    const int32_t v = order_[i];
    while (cuts[k + 1] <= i) ++k;
    placement[v] = ledger.fitting_device(v, sequence_, k);
    ledger.place(v, placement[v]);
  }
  return placement;
}

}  // namespace regal
