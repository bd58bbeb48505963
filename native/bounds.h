#pragma once
#include <cstdint>
#include <vector>

#include "problem.h"

namespace regal {

// Ops in an order that respects the predecessors: smallest op first among the ready ones.
std::vector<int32_t> topological_order(const OrderProblem& problem);

// The most bytes that the in-place pairs of `op` can save: each storage takes part once.
int64_t most_saved_in_place(const OrderProblem& problem, int32_t op);

// Per op: bytes that are live during its step in every order, less the most that its in-place pairs can
// save, plus its workspace. A storage is live for sure if it is an input or some toucher is the op
// itself or an ancestor, and it is an output or some toucher is the op or a descendant.
// Cost: O((n + m + touches) * storages / 64) time, O(n) memory per block of storages.
std::vector<int64_t> op_bounds(const OrderProblem& problem);

// No order has a lower peak: the largest op bound, or the cheapest first or last step.
int64_t peak_bound(const OrderProblem& problem);

}  // namespace regal
