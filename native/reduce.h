#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "problem.h"

namespace regal {

// The same problem with time running backwards: an order and its reverse have equal peaks.
OrderProblem reversed(const OrderProblem& problem);

// A problem over some of the ops of a larger one: op i of `problem` is ops[i] of the larger.
struct Part {
  OrderProblem problem;
  std::vector<int32_t> ops;
};

enum class When : uint8_t { Before, Inside, After };

// The ops marked Inside, given that all ops marked Before run earlier and all marked After later.
// A step of the part costs what it costs in the larger problem. Every path between two inside ops must
// stay inside.
Part part_of(const OrderProblem& problem, std::span<const When> when);

// Splits the ops where every order must split: at each op that is comparable with all others.
// Returns the segment number of each op, in the order in which the segments run. Ops without effect on
// memory do not count; each goes to the first segment where it can run.
// Cost: O(n + m).
std::vector<int32_t> segments_of(const OrderProblem& problem);

// True if the op changes no memory in any order: it neither starts nor ends a storage that has bytes.
std::vector<uint8_t> free_ops(const OrderProblem& problem);

}  // namespace regal
