#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "effort.h"
#include "problem.h"

namespace regal {

// Lowers the peak of `order` by solving stretches of it exactly: `width` steps around the step of the
// peak, then stretches that begin or end near it. A stretch that gets a lower peak replaces the old one;
// nothing outside it changes, because the set of ops before and after it stays the same.
// Stops when the peak is `floor` (a known lower bound), no stretch helps, or `effort` is gone.
// Each stretch may visit `most_per_window` downsets. Deterministic; never worse than `order`.
std::vector<int32_t> improve_windows(const OrderProblem& problem, std::span<const int32_t> order, int32_t width,
                                     int64_t floor, int64_t most_per_window, Effort& effort);

}  // namespace regal
