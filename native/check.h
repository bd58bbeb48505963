#pragma once
#include <cstdint>
#include <span>

#include "problem.h"

namespace regal {

enum class OrderFault { None, NotAPermutation, ReaderTooEarly, InPlaceNotAllowed, InPlaceNotLast, InPlaceTwice };

// `first` is the guilty op (NotAPermutation, ReaderTooEarly) or in-place row; `second` its partner:
// the op that should have come earlier or later, else -1. `peak_bytes` is filled for a legal plan.
struct OrderVerdict {
  OrderFault fault = OrderFault::None;
  int64_t first = -1;
  int64_t second = -1;
  int64_t peak_bytes = 0;
};

// Judges a plan and recomputes its peak from the intervals of its storages.
// Shares no code with simulate.cc: that one walks the order, this one paints intervals.
// `in_place` has rows (op, in storage, out storage).
OrderVerdict check_order(const OrderProblem& problem, std::span<const int64_t> order,
                         std::span<const int64_t> in_place);

// One buffer of a memory plan. Steps are inclusive, bytes half-open.
struct Buffer {
  int64_t first_step;
  int64_t last_step;
  int64_t bytes;   // > 0
  int64_t offset;  // >= 0, a multiple of the alignment
};

enum class OffsetFault { None, Empty, Inverted, Negative, Misaligned, PastEnd, Overlap };

// `first` is the guilty buffer; `second` its partner for Overlap, else -1.
struct OffsetVerdict {
  OffsetFault fault = OffsetFault::None;
  int64_t first = -1;
  int64_t second = -1;
};

// Checks offsets against lifetimes: compares all pairs that share a step. Shares no code with the planner.
// Cost: O(n log n + pairs that share a step).
OffsetVerdict check_offsets(std::span<const Buffer> buffers, int64_t arena_bytes, int64_t alignment);

}  // namespace regal
