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
  Hint,  // lowest hint first, buffers without a hint last
};

inline constexpr std::array kGreedyRules = {
    GreedyRule::Size,           GreedyRule::SizeLaterFirst, GreedyRule::Area,
    GreedyRule::Lifetime,       GreedyRule::Start,          GreedyRule::WidthAreaTotal,
    GreedyRule::TotalAreaWidth, GreedyRule::TotalWidthArea, GreedyRule::Hint};

// The buffers without a fixed offset, sorted by the rule.
std::vector<int32_t> greedy_order(const OffsetProblem& problem, GreedyRule rule);

}  // namespace regal
