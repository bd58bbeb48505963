#include "offsets_improve.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "offsets_greedy.h"
#include "offsets_sections.h"

namespace regal {
namespace {

constexpr int64_t kAnyEnd = std::numeric_limits<int64_t>::max();

}  // namespace

Improver::Improver(const OffsetProblem& problem, uint64_t seed)
    : problem_(problem),
      placer_(problem),
      random_(seed, 0),
      // Placing n buffers costs about as much as this many nodes of the tree.
      cost_(1 + static_cast<int64_t>(problem.n) * problem.n / 65536),
      best_arena_(kAnyEnd) {}

int64_t Improver::try_order(std::span<const int32_t> order, FitRule rule) {
  const int64_t arena = placer_.place(order, rule, kAnyEnd);
  if (arena < best_arena_) {
    best_arena_ = arena;
    best_offsets_ = placer_.offsets();
    best_order_.assign(order.begin(), order.end());
    best_rule_ = rule;
  }
  return arena;
}

void Improver::start(int64_t target, const SpendNodes& spend) {
  for (const GreedyRule rule : kGreedyRules) {
    const std::vector<int32_t> order = greedy_order(problem_, rule);
    for (const FitRule fit : {FitRule::First, FitRule::Best}) {
      const bool is_over = try_order(order, fit) <= target || spend(cost_);
      if (is_over) return;
    }
  }
}

void Improver::improve(int64_t target, int64_t rounds, const SpendNodes& spend) {
  std::vector<int32_t> order = best_order_, early, late;
  FitRule rule = best_rule_;
  std::vector<int64_t> offsets = best_offsets_;
  for (int64_t round = 0; round < rounds && best_arena_ > target; ++round) {
    // What ends above the target goes to the front; everything else keeps its place.
    early.clear();
    late.clear();
    for (const int32_t b : order) (offsets[b] + problem_.bytes[b] > target ? early : late).push_back(b);
    order = early;
    order.insert(order.end(), late.begin(), late.end());
    try_order(order, rule);
    offsets = placer_.offsets();
    if (spend(cost_)) return;
  }
}

}  // namespace regal
