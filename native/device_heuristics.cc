#include "device_heuristics.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "device_heuristics_groups.h"
#include "device_heuristics_list.h"
#include "device_heuristics_simple.h"
#include "device_heuristics_splits.h"
#include "device_heuristics_tables.h"
#include "rng.h"
#include "threads.h"

namespace regal {
namespace {

constexpr int32_t kManyOps = 30'000;

// How many variants are tried: fewer for large graphs, whose variants take long and differ little.
struct Effort {
  std::vector<double> work;     // fills by work: 1 is balanced, n everything on the first device
  std::vector<double> traffic;  // the same as limits of the cuts by traffic
  std::vector<double> follow;   // between what one op needs (0) and what one device needs (1)
  std::vector<double> squeeze;  // times the least bound that holds
  size_t reordered;             // best placements whose ops also run in other orders
  size_t reordered_of_rule;     // and of each rule
};

Effort effort_of(const DeviceProblem& problem) {
  const double n = problem.n_devices;
  const auto between = [&](double part) { return 1 + part * (n - 1); };
  if (problem.n_ops > kManyOps) {
    return {{0.5, 1, between(0.2), between(0.5), between(0.75)}, {1.05, n}, {0.1, 0.3, 0.6}, {1}, 4, 2};
  }
  return {{0.25, 0.5, 0.75, 1, between(0.1), between(0.2), between(0.35), between(0.5), between(0.75)},
          {1.05, 1.2, 1.5, n},
          {0, 0.1, 0.2, 0.3, 0.45, 0.6},
          {1, 1.04},
          12,
          3};
}

std::string percent(double value) { return std::to_string(std::lround(value * 100)) + "%"; }

// Collects candidates, and judges each distinct one.
class Candidates {
 public:
  Candidates(const DeviceTables& tables, const Objective& objective)
      : effort(effort_of(tables.problem)), tables_(tables), orders_(tables), objective_(objective) {}

  const Effort effort;

  const std::vector<int32_t>& order(BaseOrders::Kind kind) { return orders_[kind]; }
  const Objective& objective() const { return objective_; }
  void add_schedule(std::string name, Placed placed) { add(std::move(name), std::move(placed), false); }
  // Its ops may just as well run in other orders: reorder_best() tries them.
  void add_placement(std::string name, Placed placed) { add(std::move(name), std::move(placed), true); }
  void reorder_best();
  int64_t evaluations() const { return static_cast<int64_t>(seen_.size()); }
  std::vector<NamedSchedule> take();

 private:
  struct Candidate {
    NamedSchedule named;
    bool has_free_order;
  };
  void add(std::string name, Placed placed, bool has_free_order);
  void sort_best_first();

  const DeviceTables& tables_;
  BaseOrders orders_;
  const Objective& objective_;
  std::unordered_set<uint64_t> seen_;
  std::vector<Candidate> found_;
};

// Devices of one class are numbered by first use, so that equal schedules look equal.
void canonize(const DeviceProblem& problem, Placed& placed) {
  const int32_t devices = problem.n_devices;
  std::vector<int32_t> renamed(devices, -1);
  std::vector<uint8_t> is_taken(devices, 0);
  const auto rename = [&](int32_t device) {
    if (renamed[device] >= 0) return;
    int32_t d = 0;
    while (is_taken[d] || problem.device_class[d] != problem.device_class[device]) ++d;
    renamed[device] = d;
    is_taken[d] = 1;
  };
  for (const int32_t v : placed.order) rename(placed.placement[v]);
  for (int32_t& device : placed.placement) device = renamed[device];
}

NamedSchedule judged(const DeviceProblem& problem, const Objective& objective, std::string name,
                     Placed placed) {
  NamedSchedule named{std::move(name), {}, {}};
  named.schedule.placement = std::move(placed.placement);
  named.schedule.order = std::move(placed.order);
  complete_schedule(problem, named.schedule);
  DeviceFigures figures;
  if (simulate_devices(problem, named.schedule, figures)) named.score = score_of(figures, objective);
  return named;
}

void Candidates::add(std::string name, Placed placed, bool has_free_order) {
  canonize(tables_.problem, placed);
  uint64_t hash = 0;
  for (const auto* values : {&placed.placement, &placed.order}) {
    for (const int32_t value : *values) hash = mixed(hash ^ static_cast<uint64_t>(value));
  }
  if (!seen_.insert(hash).second) return;
  found_.push_back(
      {judged(tables_.problem, objective_, std::move(name), std::move(placed)), has_free_order});
}

void Candidates::sort_best_first() {
  std::stable_sort(found_.begin(), found_.end(), [](const Candidate& a, const Candidate& b) {
    return a.named.score.is_better_than(b.named.score);
  });
}

// The best placements once more, in orders that suit the objective.
void Candidates::reorder_best() {
  sort_best_first();
  std::vector<std::pair<std::string, std::vector<int32_t>>> best;
  std::map<std::string, size_t> count_of;  // rule -> its placements in `best`
  for (const auto& [named, has_free_order] : found_) {
    const std::vector<int32_t>& placement = named.schedule.placement;
    const bool is_new = std::none_of(best.begin(), best.end(),
                                     [&](const auto& other) { return other.second == placement; });
    size_t& count = count_of[named.name.substr(0, named.name.find('/'))];
    if (!has_free_order || !is_new || count == effort.reordered_of_rule) continue;
    ++count;
    best.emplace_back(named.name, placement);
    if (best.size() == effort.reordered) break;
  }
  for (const auto& [name, placement] : best) {
    if (objective_.per_ns > 0) {
      const std::vector<int64_t> ranks = placed_ranks(tables_, placement);
      add_schedule(name + "/list", earliest_schedule(tables_, {ranks, placement, {}}));
    }
    if (objective_.per_byte > 0) {
      add_schedule(name + "/memory", {placement, order(BaseOrders::kLeastMemory)});
      add_schedule(name + "/safe", {placement, order(BaseOrders::kSafeMemory)});
      add_schedule(name + "/dfs", {placement, order(BaseOrders::kDfs)});
    }
  }
  sort_best_first();
}

std::vector<NamedSchedule> Candidates::take() {
  std::vector<NamedSchedule> result;
  for (Candidate& candidate : found_) result.push_back(std::move(candidate.named));
  return result;
}

struct Splits {
  bool by_work = true;
  bool by_traffic = true;
  bool by_memory = true;
};

void add_splits(const DeviceTables& tables, const std::string& name, BaseOrders::Kind kind,
                Splits splits, Candidates& candidates) {
  const std::vector<int32_t>& order = candidates.order(kind);
  std::vector<int32_t> sequence(tables.n_devices());
  std::iota(sequence.begin(), sequence.end(), 0);
  const auto& classes = tables.problem.device_class;
  const bool has_equal_devices = std::count(classes.begin(), classes.end(), classes[0]) ==
                                 static_cast<int64_t>(classes.size());
  for (const bool is_reversed : {false, true}) {
    if (is_reversed && has_equal_devices) break;
    const std::string prefix = name + (is_reversed ? "/backward" : "");
    if (is_reversed) std::reverse(sequence.begin(), sequence.end());
    OrderSplitter splitter(tables, order, sequence);
    const auto add = [&](const std::string& kind_name, const Cuts& cuts) {
      if (!cuts.empty()) candidates.add_placement(prefix + kind_name, {splitter.placement_of(cuts), order});
    };
    for (const double fill : candidates.effort.work) {
      if (splits.by_work) add("/work " + percent(fill), splitter.by_work(fill));
    }
    for (const double fill : candidates.effort.traffic) {
      if (splits.by_traffic) add("/traffic " + percent(fill), splitter.by_traffic(fill));
    }
    if (splits.by_memory && candidates.objective().per_byte > 0) add("/live", splitter.by_memory());
  }
}

void add_cpop(const DeviceTables& tables, Candidates& candidates) {
  const DeviceProblem& problem = tables.problem;
  std::vector<int64_t> priorities = upward_ranks(tables);
  const std::vector<int64_t> down = downward_ranks(tables);
  for (int32_t v = 0; v < problem.n_ops; ++v) priorities[v] += down[v];
  std::vector<int32_t> path;
  for (const int32_t v : tables.topological) {
    if (problem.predecessors[v].empty() && (path.empty() || priorities[v] > priorities[path[0]])) {
      path.assign(1, v);
    }
  }
  while (!path.empty()) {
    const auto below = problem.successors[path.back()];
    const auto next = std::find_if(below.begin(), below.end(), [&](int32_t v) {
      return priorities[v] == priorities[path[0]];
    });
    if (next == below.end()) break;
    path.push_back(*next);
  }
  int32_t fastest = 0;
  int64_t least = INT64_MAX;
  for (int32_t d = 0; d < problem.n_devices; ++d) {
    int64_t work = 0;
    for (const int32_t v : path) {
      work += problem.may_run_on(v, d) ? problem.duration_of(v, d) : 2 * tables.mean_duration[v];
    }
    if (work < least) fastest = d;
    least = std::min(least, work);
  }
  std::vector<int32_t> wished(problem.n_ops, -1);
  for (const int32_t v : path) wished[v] = fastest;
  candidates.add_schedule("cpop", insertion_schedule(tables, {priorities, {}, wished}));
}

void add_peft(const DeviceTables& tables, Candidates& candidates) {
  const DeviceProblem& problem = tables.problem;
  const std::vector<int64_t> beyond = optimistic_costs(tables);
  std::vector<int64_t> priorities(problem.n_ops);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    Mean mean(problem.n_devices);
    for (int32_t d = 0; d < problem.n_devices; ++d) {
      mean.add(beyond[static_cast<int64_t>(v) * problem.n_devices + d]);
    }
    priorities[v] = mean.value();
  }
  candidates.add_schedule("peft", insertion_schedule(tables, {priorities, beyond, {}}));
}

void add_greedy_memory(const DeviceTables& tables, Candidates& candidates) {
  const std::pair<BaseOrders::Kind, std::string> kinds[] = {{BaseOrders::kLeastMemory, "memory"},
                                                            {BaseOrders::kSafeMemory, "safe"},
                                                            {BaseOrders::kDfs, "dfs"}};
  for (const auto& [kind, order_name] : kinds) {
    const std::vector<int32_t>& order = candidates.order(kind);
    candidates.add_placement("greedy-memory/" + order_name + "/growth", {least_growth(tables, order), order});
    add_splits(tables, "greedy-memory/" + order_name, kind, {false, false, true}, candidates);
    const FollowBounds bounds = follow_bounds(tables, order);
    const auto add = [&](const std::string& variant, double part, int64_t low, int64_t high) {
      const int64_t most = low + static_cast<int64_t>(part * static_cast<double>(high - low));
      candidates.add_placement("greedy-memory/" + order_name + variant + percent(part),
                               {follow_inputs(tables, order, most), order});
    };
    for (const double part : candidates.effort.follow) {
      add("/follow ", part, bounds.low, bounds.high);
    }
    for (const double part : candidates.effort.squeeze) add("/squeeze ", part, 0, bounds.least);
  }
}

void add_rule(const DeviceTables& tables, DeviceRule rule, Candidates& candidates) {
  const DeviceProblem& problem = tables.problem;
  switch (rule) {
    case DeviceRule::SingleDevice:
      for (int32_t d = 0; d < problem.n_devices; ++d) {
        candidates.add_placement("single-device " + std::to_string(d), {single_device(tables, d), tables.topological});
      }
      return;
    case DeviceRule::RoundRobin:
      candidates.add_placement("round-robin", {round_robin(tables), tables.topological});
      return;
    case DeviceRule::FileOrder: return add_splits(tables, "file-order", BaseOrders::kFile, {}, candidates);
    case DeviceRule::Dfs:
      add_splits(tables, "dfs", BaseOrders::kDfs, {}, candidates);
      add_splits(tables, "dfs/reverse", BaseOrders::kReverseDfs, {.by_work = false}, candidates);
      return;
    case DeviceRule::Bfs: return add_splits(tables, "bfs", BaseOrders::kLevels, {}, candidates);
    case DeviceRule::MTopo: {
      const std::vector<int32_t>& order = candidates.order(BaseOrders::kLevels);
      candidates.add_placement("m-topo", {topological_fill(tables, order, true), order});
      candidates.add_placement("m-topo/full", {topological_fill(tables, order, false), order});
      return;
    }
    case DeviceRule::MEtf: {
      const DeviceProblem together = put_together(problem);
      const DeviceTables joined(together);
      candidates.add_schedule("m-etf", earliest_schedule(tables, {static_levels(tables), {}, {}}));
      candidates.add_schedule("m-etf/together", earliest_schedule(joined, {static_levels(joined), {}, {}}));
      return;
    }
    case DeviceRule::Etf:
      candidates.add_schedule("etf", earliest_schedule(tables, {static_levels(tables), {}, {}}));
      return;
    case DeviceRule::Sct: {
      const std::vector<int64_t> levels = static_levels(tables);
      const std::vector<int32_t> critical = greedy_favorites(tables, Favorites::Critical);
      const std::vector<int32_t> dear = greedy_favorites(tables, Favorites::Dear);
      candidates.add_schedule("sct/critical", earliest_schedule(tables, {levels, {}, critical}));
      candidates.add_schedule("sct/dear", earliest_schedule(tables, {levels, {}, dear}));
      return;
    }
    case DeviceRule::Heft:
      candidates.add_schedule("heft", insertion_schedule(tables, {upward_ranks(tables), {}, {}}));
      return;
    case DeviceRule::Cpop: return add_cpop(tables, candidates);
    case DeviceRule::Peft: return add_peft(tables, candidates);
    case DeviceRule::GreedyMemory: return add_greedy_memory(tables, candidates);
  }
}

}  // namespace

std::vector<NamedSchedule> heuristic_schedules(const DeviceProblem& problem,
                                               std::span<const DeviceRule> rules,
                                               const Objective& objective, int64_t& evaluations) {
  const DeviceTables tables(problem);
  Candidates candidates(tables, objective);
  for (const DeviceRule rule : rules) add_rule(tables, rule, candidates);
  candidates.reorder_best();
  evaluations = candidates.evaluations();
  return candidates.take();
}

NamedSchedule favorite_schedule(const DeviceProblem& problem, std::span<const int32_t> favorites,
                                bool puts_together, const Objective& objective) {
  const DeviceProblem together = puts_together ? put_together(problem) : problem;
  const DeviceTables tables(together);
  Placed placed = earliest_schedule(tables, {static_levels(tables), {}, favorites});
  canonize(problem, placed);
  return judged(problem, objective, puts_together ? "m-sct" : "sct", std::move(placed));
}

std::vector<NamedSchedule> placed_schedules(const DeviceProblem& problem,
                                            std::span<const std::vector<int32_t>> placements,
                                            PlacementOrder order, bool fits,
                                            const Objective& objective, int threads) {
  const DeviceTables tables(problem);
  BaseOrders orders(tables);
  const bool is_fixed = order != PlacementOrder::List;
  const std::vector<int32_t> base =
      is_fixed ? orders[static_cast<BaseOrders::Kind>(order)] : std::vector<int32_t>{};
  std::vector<NamedSchedule> result(placements.size());
  Workers workers(threads);
  workers.run(static_cast<int64_t>(placements.size()), [&](int64_t task, int) {
    Placed placed{placements[task], base};
    if (fits) placed.placement = fit_placement(tables, placements[task]);
    if (!is_fixed) {
      const std::vector<int64_t> ranks = placed_ranks(tables, placed.placement);
      placed.order = earliest_schedule(tables, {ranks, placed.placement, {}}).order;
    }
    result[task] = judged(problem, objective, std::to_string(task), std::move(placed));
    return true;
  });
  return result;
}

}  // namespace regal
