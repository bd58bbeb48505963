#include "offsets_solve.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>

#include "offsets_greedy.h"
#include "offsets_improve.h"
#include "offsets_sections.h"

namespace regal {
namespace {

// Above this the bit rows of the tree would take hundreds of MB and a node would cost milliseconds.
constexpr int32_t kLargestTree = 8192;
constexpr int64_t kAnyEnd = std::numeric_limits<int64_t>::max();

// The hardest of minimalloc's instances at their bound need up to 150,000 nodes.
constexpr int64_t kNodesAtBound = 500'000;
constexpr int64_t kImproveRounds = 20;  // before the tree, which is better where it fits

constexpr TreeStrategy kStrategies[] = {
    {Branching::Lowest, Preference::WidthAreaTotal, 0, 0.0},
    {Branching::FewestChoices, Preference::WidthAreaTotal, 0, 0.0},
    {Branching::Lowest, Preference::TotalAreaWidth, 0, 0.0},
    {Branching::FewestChoices, Preference::TotalAreaWidth, 0, 0.0},
    {Branching::Lowest, Preference::TotalWidthArea, 0, 0.0},
    {Branching::FewestChoices, Preference::SizeWidth, 0, 0.0},
};
constexpr double kNoises[] = {0.05, 0.2, 0.5};
// A restart that has not fitted after this many nodes per buffer rarely does (measured on
// minimalloc's D and J: 1 in 20 fits within it, and few more within ten times as many).
constexpr int64_t kRestartNodes = 40;

class Budget {
 public:
  explicit Budget(const OffsetLimits& limits) : limits_(limits), start_(now()) {}

  int64_t used = 0;

  bool is_spent() const {
    if (limits_.nodes > 0 && used >= limits_.nodes) return true;
    if (limits_.cancel != nullptr && limits_.cancel->load(std::memory_order_relaxed)) return true;
    return limits_.seconds > 0 && now() - start_ >= limits_.seconds;
  }

  // What is left, but at most `nodes`.
  OffsetLimits share(int64_t nodes) const {
    OffsetLimits part = limits_;
    part.nodes = limits_.nodes > 0 ? std::min(nodes, std::max<int64_t>(limits_.nodes - used, 1)) : nodes;
    if (limits_.seconds > 0) part.seconds = std::max(limits_.seconds - (now() - start_), 1e-6);
    return part;
  }

 private:
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  OffsetLimits limits_;
  double start_;
};

// Decides one capacity: all strategies in turn, then as many nodes in short noisy restarts, and
// all again with twice the nodes each.
class Decider {
 public:
  Decider(const OffsetProblem& problem, const TreeOptions& options, uint64_t seed, Budget& budget)
      : problem_(problem), tree_(problem, options), budget_(budget), seed_(seed << 32) {}

  // Spends about `nodes`.
  TreeVerdict decide(int64_t capacity, int64_t nodes) {
    const int64_t restart_nodes = kRestartNodes * problem_.n;
    int64_t spent = 0;
    for (int64_t limit = 2 * problem_.n; spent < nodes; limit *= 2) {
      const int64_t before = spent;
      for (const TreeStrategy& strategy : kStrategies) {
        const TreeVerdict verdict = run(capacity, strategy, limit, spent);
        if (verdict != TreeVerdict::Stopped || budget_.is_spent()) return verdict;
      }
      for (const int64_t end = spent + (spent - before); spent < std::min(end, nodes);) {
        TreeStrategy strategy = kStrategies[n_restarts_ % std::size(kStrategies)];
        strategy.noise = kNoises[n_restarts_ % std::size(kNoises)];
        strategy.seed = seed_ + ++n_restarts_;
        const TreeVerdict verdict = run(capacity, strategy, std::min(limit, restart_nodes), spent);
        if (verdict != TreeVerdict::Stopped || budget_.is_spent()) return verdict;
      }
    }
    return TreeVerdict::Stopped;
  }

  const std::vector<int64_t>& offsets() const { return tree_.offsets(); }

 private:
  TreeVerdict run(int64_t capacity, const TreeStrategy& strategy, int64_t limit, int64_t& spent) {
    int64_t used = 0;
    const TreeVerdict verdict = tree_.search(capacity, strategy, budget_.share(limit), used);
    budget_.used += used;
    spent += used;
    return verdict;
  }

  const OffsetProblem& problem_;
  OffsetTree tree_;
  Budget& budget_;
  uint64_t seed_;
  uint64_t n_restarts_ = 0;
};

void keep(const OffsetProblem& problem, const std::vector<int64_t>& offsets, OffsetResult& result) {
  const int64_t arena = arena_of(problem, offsets);
  if (!result.offsets.empty() && arena >= result.arena_bytes) return;
  result.offsets = offsets;
  result.arena_bytes = arena;
}

// What is known without any search.
OffsetResult facts_of(const OffsetProblem& problem) {
  OffsetResult result;
  result.lower_bound = problem.lower_bound;
  if (problem.has_clash()) result.status = OffsetStatus::Infeasible;
  if (problem.n == 0) result.status = OffsetStatus::Optimal;
  if (problem.n_sections == 0) return result;
  const std::vector<int64_t> live = live_bytes(problem);
  const auto fullest = std::max_element(live.begin(), live.end());
  result.fullest_step = problem.section_step[fullest - live.begin()];
  result.fullest_bytes = *fullest;
  return result;
}

// Lowers the arena: first straight to the bound, which most graphs reach, with half of the budget;
// then by bisection, since a far too low capacity is as hard to refute as a high one is useless.
void minimize(const OffsetProblem& problem, const OffsetOptions& options, Budget& budget, OffsetResult& result) {
  Decider decider(problem, options.tree, options.seed, budget);
  const int64_t left = options.limits.nodes > 0 ? options.limits.nodes - budget.used : kAnyEnd;
  int64_t nodes = std::clamp<int64_t>(left / 2, 1, std::max<int64_t>(kNodesAtBound, 400 * problem.n));
  int64_t target = result.lower_bound;
  while (result.arena_bytes > result.lower_bound && !budget.is_spent()) {
    const TreeVerdict verdict = decider.decide(target, nodes);
    if (verdict == TreeVerdict::Fits) keep(problem, decider.offsets(), result);
    if (verdict == TreeVerdict::Infeasible) result.lower_bound = target + problem.unit;
    // Below `undecided` the tree gave up, with the nodes that it has now.
    const int64_t undecided = verdict == TreeVerdict::Stopped ? target : result.lower_bound - problem.unit;
    const int64_t steps = (result.arena_bytes - undecided) / problem.unit;
    if (verdict == TreeVerdict::Stopped && steps <= 1) {
      nodes *= 2;
      target = result.lower_bound;
      continue;  // all capacities are open again, with more nodes each
    }
    nodes = std::max(std::min(left / 16, kNodesAtBound), 100 * int64_t{problem.n});
    target = std::max(undecided + std::max<int64_t>(steps / 2, 1) * problem.unit, result.lower_bound);
  }
}

}  // namespace

OffsetResult place_greedily(const OffsetProblem& problem, GreedyRule rule, FitRule fit, int64_t capacity) {
  OffsetResult result = facts_of(problem);
  if (problem.n == 0 || problem.has_clash()) return result;
  Placer placer(problem);
  result.arena_bytes = placer.place(greedy_order(problem, rule), fit, capacity == kFree ? kAnyEnd : capacity);
  result.offsets = placer.offsets();
  if (capacity == kFree && result.arena_bytes == result.lower_bound) result.status = OffsetStatus::Optimal;
  return result;
}

OffsetResult search_tree(const OffsetProblem& problem, int64_t capacity, const TreeOptions& options,
                         const TreeStrategy& strategy, const OffsetLimits& limits) {
  OffsetResult result = facts_of(problem);
  if (problem.n == 0 || problem.has_clash()) return result;
  OffsetTree tree(problem, options);
  const TreeVerdict verdict = tree.search(capacity, strategy, limits, result.nodes);
  if (verdict == TreeVerdict::Fits) {
    keep(problem, tree.offsets(), result);
    result.status = OffsetStatus::Optimal;
  }
  if (verdict == TreeVerdict::Infeasible) result.status = OffsetStatus::Infeasible;
  return result;
}

OffsetResult solve_offsets(const OffsetProblem& problem, const OffsetOptions& options) {
  OffsetResult result = facts_of(problem);
  if (problem.n == 0) return result;
  const bool has_capacity = options.capacity != kFree;
  if (problem.has_clash() || (has_capacity && options.capacity < problem.lower_bound)) {
    result.status = OffsetStatus::Infeasible;
    return result;
  }
  Budget budget(options.limits);
  const int64_t target = has_capacity ? options.capacity : problem.lower_bound;
  const auto is_done = [&] { return !result.offsets.empty() && result.arena_bytes <= target; };

  Improver improver(problem, options.seed, target, [&](int64_t cost) {
    budget.used += cost;
    return budget.is_spent();
  });
  improver.start();
  const bool has_tree = problem.n <= kLargestTree;
  if (!improver.is_done() && !budget.is_spent()) {
    improver.improve(has_tree ? kImproveRounds : std::numeric_limits<int64_t>::max());
  }
  keep(problem, improver.best(), result);
  if (!is_done() && has_tree) {
    if (has_capacity) {
      Decider decider(problem, options.tree, options.seed, budget);
      const TreeVerdict verdict = decider.decide(options.capacity, kAnyEnd);
      if (verdict == TreeVerdict::Fits) keep(problem, decider.offsets(), result);
      if (verdict == TreeVerdict::Infeasible) result.status = OffsetStatus::Infeasible;
    } else {
      minimize(problem, options, budget, result);
    }
  }
  result.nodes = budget.used;
  const bool is_proven = has_capacity ? is_done() : result.arena_bytes <= result.lower_bound;
  if (is_proven) result.status = OffsetStatus::Optimal;
  return result;
}

}  // namespace regal
