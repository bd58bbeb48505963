#include "offsets_solve.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "offsets_greedy.h"
#include "offsets_improve.h"
#include "offsets_sections.h"

namespace regal {
namespace {

// Above this the bit rows of the tree would take hundreds of MB and a node would cost milliseconds.
constexpr int32_t kLargestTree = 8192;
constexpr int64_t kAnyEnd = std::numeric_limits<int64_t>::max();

constexpr TreeStrategy kStrategies[] = {
    {Branching::Lowest, Preference::WidthAreaTotal, 0},
    {Branching::FewestChoices, Preference::WidthAreaTotal, 0},
    {Branching::Lowest, Preference::TotalAreaWidth, 0},
    {Branching::FewestChoices, Preference::TotalAreaWidth, 0},
    {Branching::Lowest, Preference::TotalWidthArea, 0},
    {Branching::FewestChoices, Preference::SizeWidth, 0},
};

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

// Decides one capacity with all strategies in turn, each time with twice the nodes.
class Decider {
 public:
  Decider(const OffsetProblem& problem, const TreeOptions& options) : problem_(problem), tree_(problem, options) {}

  // Spends about `nodes`; a later call with the same capacity goes on with more per strategy.
  TreeVerdict decide(int64_t capacity, int64_t nodes, uint64_t seed, Budget& budget) {
    int64_t spent = 0;
    int64_t limit = 2 * problem_.n;
    for (; spent < nodes; limit *= 2) {
      for (TreeStrategy strategy : kStrategies) {
        strategy.seed = seed;
        if (budget.is_spent()) return TreeVerdict::Stopped;
        int64_t used = 0;
        const TreeVerdict verdict = tree_.search(capacity, strategy, budget.share(limit), used);
        budget.used += used;
        spent += used;
        if (verdict != TreeVerdict::Stopped) return verdict;
      }
    }
    return TreeVerdict::Stopped;
  }

  const std::vector<int64_t>& offsets() const { return tree_.offsets(); }

 private:
  const OffsetProblem& problem_;
  OffsetTree tree_;
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

// Lowers the arena step by step: first straight to the bound, which most graphs reach; then in
// between, since a far too low capacity is as hard to refute as a far too high one is useless.
void minimize(const OffsetProblem& problem, const OffsetOptions& options, Budget& budget, OffsetResult& result) {
  Decider decider(problem, options.tree);
  int64_t nodes = std::max<int64_t>(24 * problem.n, 1000);
  int64_t target = result.lower_bound;
  while (result.arena_bytes > result.lower_bound && !budget.is_spent()) {
    const TreeVerdict verdict = decider.decide(target, nodes, options.seed, budget);
    if (verdict == TreeVerdict::Fits) keep(problem, decider.offsets(), result);
    if (verdict == TreeVerdict::Infeasible) result.lower_bound = target + problem.unit;
    const int64_t lowest = verdict == TreeVerdict::Stopped ? target : result.lower_bound;
    const int64_t steps = (result.arena_bytes - lowest) / problem.unit;
    if (verdict == TreeVerdict::Stopped && steps <= 1) {
      nodes *= 4;
      target = result.lower_bound;
    } else {
      target = std::min(lowest + std::max<int64_t>(steps / 2, 0) * problem.unit,
                        result.arena_bytes - problem.unit);
      target = std::max(target, result.lower_bound);
    }
  }
}

}  // namespace

OffsetResult place_greedily(const OffsetProblem& problem, GreedyRule rule, FitRule fit) {
  OffsetResult result = facts_of(problem);
  if (problem.n == 0 || problem.has_clash()) return result;
  Placer placer(problem);
  placer.place(greedy_order(problem, rule), fit, kAnyEnd);
  keep(problem, placer.offsets(), result);
  if (result.arena_bytes == result.lower_bound) result.status = OffsetStatus::Optimal;
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

  Improver improver(problem, options.seed);
  improver.start(target, [&](int64_t cost) {
    budget.used += cost;
    return budget.is_spent();
  });
  keep(problem, improver.best(), result);
  const bool has_tree = problem.n <= kLargestTree;
  if (!is_done()) {
    const int64_t rounds = has_tree ? 50 : std::numeric_limits<int64_t>::max();
    improver.improve(target, rounds, [&](int64_t cost) {
      budget.used += cost;
      return budget.is_spent();
    });
    keep(problem, improver.best(), result);
  }
  if (!is_done() && has_tree) {
    if (has_capacity) {
      Decider decider(problem, options.tree);
      const TreeVerdict verdict = decider.decide(options.capacity, kAnyEnd, options.seed, budget);
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
