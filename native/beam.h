#pragma once
#include <cstdint>
#include <vector>

#include "effort.h"
#include "problem.h"

namespace regal {

// The best order found by a beam over downsets: after each step only the `width` most promising sets
// of done ops go on (lowest peak so far, never below `floor`; then fewest live bytes), each set once.
// A step that fits below the peak so far and adds no bytes is taken at once (see ForcedMoves).
// `floor`: a known lower bound of the peak; peaks below it count as equal.
// Deterministic. Spends one unit per kept set (more if it has many moves); empty if `effort` ends first.
// Cost: O(n * width * (ready ops * touches + storages)), the last term only where the beam forks.
std::vector<int32_t> beam_order(const OrderProblem& problem, int32_t width, int64_t floor, Effort& effort);

// The better of that and of a beam through the reversed problem (`backward`), which is tried only where
// the first misses `floor`: where memory grows at first, as in training graphs, the end is easier.
// What a direction that `effort` ended would have found is left out.
std::vector<int32_t> beam_both_ways(const OrderProblem& problem, const OrderProblem& backward, int32_t width,
                                    int64_t floor, Effort& effort);

}  // namespace regal
