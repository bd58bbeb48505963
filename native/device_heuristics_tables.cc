#include "device_heuristics_tables.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "heuristics.h"

namespace regal {
namespace {

using Pairs = std::vector<std::pair<int32_t, int32_t>>;

std::vector<int32_t> lowest_first(const DeviceProblem& problem) {
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  std::vector<int32_t> order, waiting(problem.n_ops);
  order.reserve(problem.n_ops);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    waiting[v] = static_cast<int32_t>(problem.predecessors[v].size());
    if (waiting[v] == 0) ready.push(v);
  }
  while (!ready.empty()) {
    const int32_t v = ready.top();
    ready.pop();
    order.push_back(v);
    for (const int32_t w : problem.successors[v]) {
      if (--waiting[w] == 0) ready.push(w);
    }
  }
  return order;
}

std::vector<int32_t> by_levels(const DeviceTables& tables) {
  const DeviceProblem& problem = tables.problem;
  std::vector<int32_t> level(problem.n_ops, 0), order = tables.topological;
  for (const int32_t v : tables.topological) {
    for (const int32_t u : problem.predecessors[v]) level[v] = std::max(level[v], level[u] + 1);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return level[a] < level[b]; });
  return order;
}

// The problem with everything on one device: residents are left out.
OrderProblem on_one_device(const DeviceTables& tables) {
  const DeviceProblem& problem = tables.problem;
  OrderProblem one;
  one.n_ops = problem.n_ops;
  one.n_storages = problem.n_storages;
  one.predecessors = problem.predecessors;
  one.successors = problem.successors;
  one.touched = tables.touched;
  Pairs touchers;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    for (const int32_t s : tables.touched[v]) touchers.emplace_back(s, v);
  }
  one.touchers = csr_of(std::move(touchers), problem.n_storages);
  one.bytes = problem.bytes;
  one.workspace = problem.workspace;
  one.is_input.assign(problem.n_storages, 0);
  for (int32_t t = 0; t < problem.n_tensors; ++t) {
    if (problem.producer[t] < 0 && problem.storage[t] >= 0) one.is_input[problem.storage[t]] = 1;
  }
  one.is_output = tables.stays;
  one.in_place = problem.in_place;
  one.in_place_of = problem.in_place_of;
  return one;
}

void fill_means(DeviceTables& tables) {
  const DeviceProblem& problem = tables.problem;
  const int32_t devices = problem.n_devices;
  tables.mean_duration.assign(problem.n_ops, 0);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    int64_t count = 0;
    for (int32_t d = 0; d < devices; ++d) count += problem.may_run_on(v, d) ? 1 : 0;
    Mean mean(count);
    for (int32_t d = 0; d < devices; ++d) {
      if (problem.may_run_on(v, d)) mean.add(problem.duration_of(v, d));
    }
    tables.mean_duration[v] = mean.value();
  }
  tables.mean_transfer.assign(problem.n_tensors, 0);
  const int64_t links = static_cast<int64_t>(devices) * (devices - 1);
  if (links == 0) return;
  std::vector<int64_t> uses(problem.n_link_classes, 0);
  for (const int32_t link : problem.link_class) {
    if (link >= 0) ++uses[link];
  }
  for (int64_t t = 0; t < problem.n_tensors; ++t) {
    Mean mean(links);
    for (int64_t link = 0; link < problem.n_link_classes; ++link) {
      mean.add(problem.transfer[link * problem.n_tensors + t], uses[link]);
    }
    tables.mean_transfer[t] = mean.value();
  }
  Mean mean(links);
  for (const int64_t latency : problem.latency) mean.add(latency);
  tables.mean_latency = mean.value();
}

// Ranks from the last op to the first; edge costs as functions of what crosses the edge.
template <typename Duration, typename Transfer, typename Control>
std::vector<int64_t> ranks_below(const DeviceTables& tables, const Duration& duration,
                                 const Transfer& transfer, const Control& control) {
  const DeviceProblem& problem = tables.problem;
  std::vector<int64_t> rank(problem.n_ops, 0);  // at first: the longest way below the op
  for (auto it = tables.topological.rbegin(); it != tables.topological.rend(); ++it) {
    const int32_t v = *it;
    rank[v] += duration(v);
    for (const int32_t t : problem.reads[v]) {
      const int32_t u = problem.producer[t];
      if (u >= 0) rank[u] = std::max(rank[u], transfer(t, u, v) + rank[v]);
    }
    for (const int32_t u : problem.control[v]) {
      rank[u] = std::max(rank[u], control(u, v) + rank[v]);
    }
  }
  return rank;
}

}  // namespace

DeviceTables::DeviceTables(const DeviceProblem& given) : problem(given) {
  topological = lowest_first(problem);
  Pairs touches;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    for (const auto* tensors : {&problem.reads, &problem.writes}) {
      for (const int32_t t : (*tensors)[v]) {
        if (problem.storage[t] >= 0) touches.emplace_back(v, problem.storage[t]);
      }
    }
  }
  touched = csr_of(std::move(touches), problem.n_ops);
  touchers.assign(problem.n_storages, 0);
  for (const int32_t s : touched.item) ++touchers[s];
  stays.assign(problem.n_storages, 0);
  for (int32_t t = 0; t < problem.n_tensors; ++t) {
    if (problem.is_output[t] && problem.storage[t] >= 0) stays[problem.storage[t]] = 1;
  }
  Pairs residents;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    for (const int32_t r : problem.residents[v]) residents.emplace_back(problem.group[v], r);
  }
  group_residents = csr_of(std::move(residents), problem.n_groups);
  fill_means(*this);
}

std::vector<int64_t> upward_ranks(const DeviceTables& tables) {
  return ranks_below(
      tables, [&](int32_t v) { return tables.mean_duration[v]; },
      [&](int32_t t, int32_t, int32_t) { return tables.mean_transfer[t]; },
      [&](int32_t, int32_t) { return tables.mean_latency; });
}

std::vector<int64_t> static_levels(const DeviceTables& tables) {
  return ranks_below(
      tables, [&](int32_t v) { return tables.mean_duration[v]; },
      [](int32_t, int32_t, int32_t) { return int64_t{0}; }, [](int32_t, int32_t) { return int64_t{0}; });
}

std::vector<int64_t> placed_ranks(const DeviceTables& tables, std::span<const int32_t> placement) {
  const DeviceProblem& problem = tables.problem;
  return ranks_below(
      tables, [&](int32_t v) { return problem.duration_of(v, placement[v]); },
      [&](int32_t t, int32_t u, int32_t v) {
        const bool is_sent = placement[u] != placement[v];
        return is_sent ? problem.transfer_of(t, placement[u], placement[v]) : 0;
      },
      [&](int32_t u, int32_t v) {
        return problem.latency[static_cast<int64_t>(placement[u]) * problem.n_devices + placement[v]];
      });
}

std::vector<int64_t> downward_ranks(const DeviceTables& tables) {
  const DeviceProblem& problem = tables.problem;
  std::vector<int64_t> rank(problem.n_ops, 0);
  for (const int32_t v : tables.topological) {
    for (const int32_t t : problem.reads[v]) {
      const int32_t u = problem.producer[t];
      if (u < 0) continue;
      rank[v] = std::max(rank[v], rank[u] + tables.mean_duration[u] + tables.mean_transfer[t]);
    }
    for (const int32_t u : problem.control[v]) {
      rank[v] = std::max(rank[v], rank[u] + tables.mean_duration[u] + tables.mean_latency);
    }
  }
  return rank;
}

std::vector<int64_t> optimistic_costs(const DeviceTables& tables) {
  const DeviceProblem& problem = tables.problem;
  const int64_t devices = problem.n_devices;
  std::vector<int64_t> cost(problem.n_ops * devices, 0);
  std::vector<int64_t> below(devices);  // of v: from its start on each device to the end
  for (auto it = tables.topological.rbegin(); it != tables.topological.rend(); ++it) {
    const int32_t v = *it;
    int64_t least = INT64_MAX;
    for (int32_t d = 0; d < devices; ++d) {
      const bool may_run = problem.may_run_on(v, d);
      below[d] = may_run ? cost[v * devices + d] + problem.duration_of(v, d) : INT64_MAX;
      least = std::min(least, below[d]);
    }
    const auto raise = [&](int32_t u, int64_t transfer) {
      for (int32_t d = 0; d < devices; ++d) {
        int64_t& of_u = cost[u * devices + d];
        of_u = std::max(of_u, std::min(below[d], least + transfer));
      }
    };
    for (const int32_t t : problem.reads[v]) {
      if (problem.producer[t] >= 0) raise(problem.producer[t], tables.mean_transfer[t]);
    }
    for (const int32_t u : problem.control[v]) raise(u, tables.mean_latency);
  }
  return cost;
}

const std::vector<int32_t>& BaseOrders::operator[](Kind kind) {
  std::vector<int32_t>& order = orders_[kind];
  if (!order.empty()) return order;
  switch (kind) {
    case kDfs: order = classic_order(on_one_device(tables_), Classic::Dfs); break;
    case kReverseDfs: order = classic_order(on_one_device(tables_), Classic::OrtDefault); break;
    case kLevels: order = by_levels(tables_); break;
    case kLeastMemory: order = classic_order(on_one_device(tables_), Classic::GreedyMemory); break;
    case kSafeMemory: order = classic_order(on_one_device(tables_), Classic::Safe); break;
    default: order = tables_.topological;
  }
  return order;
}

}  // namespace regal
