#pragma once
#include "offsets_greedy.h"
#include "offsets_place.h"
#include "offsets_tree.h"
#include "offsets_types.h"

namespace regal {

struct OffsetOptions {
  int64_t capacity = kFree;  // kFree: find the smallest arena; else: any placement that ends below
  OffsetLimits limits;
  uint64_t seed = 0;
  TreeOptions tree;
};

// Greedy orders, then improvement of the best of them, then complete search, until the arena
// reaches the lower bound (or the capacity), the answer is proven, or the limits are reached.
// Same input, seed, and node limit: same offsets, provided that time and cancel do not strike.
OffsetResult solve_offsets(const OffsetProblem& problem, const OffsetOptions& options);

// One run of the complete search, without any heuristic before it.
OffsetResult search_tree(const OffsetProblem& problem, int64_t capacity, const TreeOptions& options,
                         const TreeStrategy& strategy, const OffsetLimits& limits);

// One greedy placement, without any search. With a capacity, what would end above it gets kFree.
OffsetResult place_greedily(const OffsetProblem& problem, GreedyRule rule, FitRule fit, int64_t capacity);

}  // namespace regal
