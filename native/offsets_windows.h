#pragma once
#include "offsets_types.h"

namespace regal {

// A buffer during steps [first, last]: of its bytes it uses [low, high), relative to its offset.
// A buffer whose use changes over time consists of several pieces.
struct WindowPiece {
  int32_t buffer;
  int64_t first_step;
  int64_t last_step;
  int64_t low;
  int64_t high;
};

struct WindowProblem {
  std::vector<int64_t> bytes;      // per buffer, >= the `high` of its pieces
  std::vector<int64_t> alignment;  // per buffer, >= 1
  std::vector<int64_t> fixed;      // per buffer, or kFree
  std::vector<WindowPiece> pieces;
};

// Places buffers that use only windows of themselves at times; `capacity` as in solve_offsets.
//
// Two pieces that are live together must be one above the other, in either order: a node takes
// such a pair that still overlaps and decides. The offsets of a node are the lowest that obey its
// decisions. Complete, without the strong bounds of OffsetTree: windows let buffers interlock,
// which breaks the idea of a floor. Meant for tens of buffers.
OffsetResult solve_windows(const WindowProblem& problem, int64_t capacity, const OffsetLimits& limits);

}  // namespace regal
