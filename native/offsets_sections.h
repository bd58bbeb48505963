#pragma once
#include <algorithm>

#include "offsets_types.h"

namespace regal {

// Fills `problem`: lifetimes become runs of sections, reserved byte ranges become fixed buffers
// after the caller's. Sums of all sizes are bounded here once, so that int64 never overflows.
// Cost: O(n log n) and the size of the runs.
OffsetInputVerdict build_offset_problem(const OffsetInput& input, OffsetProblem& problem);

// True if the two are live together at some step.
bool do_meet(const OffsetProblem& problem, int32_t a, int32_t b);

// Live bytes of every section, reserved ranges left out.
std::vector<int64_t> live_bytes(const OffsetProblem& problem);

// Highest end of a buffer; reserved ranges left out.
int64_t arena_of(const OffsetProblem& problem, std::span<const int64_t> offsets);

inline int64_t round_up(int64_t value, int64_t step) {
  const int64_t rest = value % step;
  return rest == 0 ? value : value + (step - rest);
}

// Bytes x steps, as a key to sort by; the largest areas compare equal instead of overflowing.
inline int64_t area_of(int64_t bytes, int64_t width) {
  constexpr double kMost = 4.0e18;  // leaves room for the noise of OffsetTree
  return static_cast<int64_t>(std::min(static_cast<double>(bytes) * static_cast<double>(width), kMost));
}

}  // namespace regal
