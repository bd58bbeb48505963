#pragma once
#include "offsets_types.h"

namespace regal {

enum class FitRule {
  First,  // the lowest gap
  Best,   // the smallest gap, the lowest of equals; above everything if none is large enough
};

// Puts buffers one by one into gaps between those already placed. All heuristics share it.
class Placer {
 public:
  explicit Placer(const OffsetProblem& problem);

  // Places the fixed buffers, then the others in `order` (every other buffer once). Buffers that
  // would end above `capacity` stay at kFree. Returns the arena.
  // Cost: O(n) per buffer to walk the placed ones, a few machine words each.
  int64_t place(std::span<const int32_t> order, FitRule rule, int64_t capacity);

  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  struct Placed {
    int64_t offset;
    int64_t end;
  };

  void insert(int32_t buffer, int64_t offset);
  int64_t find(int32_t buffer, FitRule rule) const;

  const OffsetProblem& problem_;
  std::vector<int32_t> fixed_;
  std::vector<SectionRun> hulls_;  // of the placed buffers, by offset
  std::vector<Placed> placed_;
  std::vector<int32_t> ids_;
  std::vector<int64_t> offsets_;
  bool has_gaps_ = false;
};

}  // namespace regal
