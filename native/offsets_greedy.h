#pragma once
#include <array>

#include "offsets_types.h"

namespace regal {

// The orders in which greedy allocators place buffers. Ties: lower id first, unless said otherwise.
enum class GreedyRule {
  Size,            // largest first
  SizeLaterFirst,  // largest first, ties towards the later buffer: TFLM's GreedyMemoryPlanner
  Area,            // largest bytes x lifetime first
  Lifetime,        // longest first
  Start,           // earliest first
  WidthAreaTotal,  // minimalloc's WAT; the others are permutations of the same keys
  TotalAreaWidth,
  TotalWidthArea,
  PeakSize,  // what is live at the fullest section first, then largest first
  Hint,  // lowest hint first, buffers without a hint last
};

// The buffers without a fixed offset, sorted by the rule.
std::vector<int32_t> greedy_order(const OffsetProblem& problem, GreedyRule rule);

}  // namespace regal
