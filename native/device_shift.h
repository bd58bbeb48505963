#pragma once
#include <cstdint>
#include <vector>

#include "device_compact.h"
#include "rng.h"

namespace regal {

// Moves a few neighbors of a topological order past others, so that it stays one.
class BlockShift {
 public:
  explicit BlockShift(const CompactDevices& problem) : problem_(&problem), is_related_(problem.n_ops()) {}

  // Shifts a block that begins or ends at position `at`. Returns false if nothing can move there.
  bool shift(std::vector<int32_t>& order, int32_t at, Rng& rng);
  void undo(std::vector<int32_t>& order) const;

 private:
  void mark(const std::vector<int32_t>& order, int32_t first, int32_t last, bool is_later, uint8_t value);

  const CompactDevices* problem_;
  std::vector<uint8_t> is_related_;  // per op: whether an op of the block must run before or after it
  int32_t begin_ = 0, middle_ = 0, end_ = 0;  // [begin, middle) and [middle, end) change places
};

}  // namespace regal
