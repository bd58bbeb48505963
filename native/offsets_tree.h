#pragma once
#include <bit>
#include <limits>

#include "offsets_types.h"

namespace regal {

enum class TreeVerdict { Fits, Infeasible, Stopped };

// Which buffer a node of the tree decides about.
enum class Branching {
  Lowest,          // the lowest of all
  FewestChoices,   // the lowest of the section in which the fewest buffers can come next
};

// Ties between equally low buffers: keys compared one after the other, larger first.
enum class Preference { WidthAreaTotal, TotalAreaWidth, TotalWidthArea, SizeWidth, Random };

struct TreeStrategy {
  Branching branching = Branching::Lowest;
  Preference preference = Preference::WidthAreaTotal;
  uint64_t seed = 0;
  double noise = 0;  // each key is stretched by up to this share, at random by seed
};

// Complete search for offsets below `capacity`.
//
// A node either places a buffer at its lowest possible offset, or decides that it lies higher.
// Only a buffer is placed below which no unplaced neighbor fits, so every pushed-down placement
// is reached by exactly one path. A node dies when a section's floor and unplaced bytes together
// pass the capacity.
//
// Sources: Moffitt, MiniMalloc, ASPLOS 2023 (section inference, dominance, decomposition); the
// "place here or higher" branching instead of an order of all buffers is this project's.
class OffsetTree {
 public:
  OffsetTree(const OffsetProblem& problem, const TreeOptions& options);

  // Runs until decided, or until `limits` are reached. `nodes` grows by the nodes visited.
  TreeVerdict search(int64_t capacity, const TreeStrategy& strategy, const OffsetLimits& limits, int64_t& nodes);

  // After Fits: the offset of every buffer.
  const std::vector<int64_t>& offsets() const { return offset_; }

 private:
  static constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

  // Visits the buffers of a row that are not placed yet, ascending.
  template <typename Visit>
  void for_each_unplaced(const std::vector<uint64_t>& rows, int64_t row, Visit visit) const {
    const uint64_t* bits_of = &rows[row * words_];
    for (int32_t w = 0; w < words_; ++w) {
      for (uint64_t bits = bits_of[w] & unplaced_[w]; bits != 0; bits &= bits - 1) {
        visit(w * 64 + std::countr_zero(bits));
      }
    }
  }

  enum class Kind : int32_t { Floor, Bound, Fit, Placed };
  struct Change {
    Kind kind;
    int32_t index;  // section or buffer
    int64_t before;
  };
  struct Section {
    int64_t floor = 0;  // no unplaced buffer of the section lies lower
    int64_t total = 0;  // bytes of its unplaced buffers
  };

  void link_peers();
  bool prepare(int64_t capacity, const TreeStrategy& strategy);
  bool solve(int32_t begin, int32_t end);
  bool solve_part(int32_t begin, int32_t end);
  void rank_part(int32_t begin, int32_t end);
  bool solve_parts(int32_t begin, int32_t end, int32_t cut_begin, int32_t cut_end);
  int32_t pick(int32_t begin, int32_t end) const;
  int32_t lowest_in(int32_t begin, int32_t end) const;
  int32_t lowest_of_scarce_section(int32_t begin, int32_t end) const;
  int32_t decidable_below(int32_t buffer) const;
  int64_t stretched(int64_t key, int64_t stream) const;
  bool comes_before(int32_t a, int32_t b) const;
  bool place(int32_t buffer);
  void unplace(int32_t buffer);
  bool push_higher(int32_t buffer);
  bool raise_bound(int32_t buffer, int64_t bound, bool is_blocked);
  void mark_dirty(int32_t buffer);
  bool settle();
  bool settle_section(int32_t section);
  void undo(size_t mark);
  bool must_stop();
  bool breaks_stack_order(int32_t buffer) const;

  const OffsetProblem& problem_;
  const TreeOptions options_;
  int32_t words_;
  std::vector<uint64_t> meets_;     // row per buffer: the buffers that share a section with it
  std::vector<uint64_t> in_section_;  // row per section
  std::vector<uint64_t> unplaced_;
  std::vector<int32_t> next_twin_;  // an equal buffer of higher id, or -1
  std::vector<int32_t> peer_;       // a ring through the buffers of the same lifetime
  std::vector<int64_t> bytes_;      // reserved ranges end at the capacity
  std::vector<int64_t> padded_;
  TreeStrategy strategy_;
  std::vector<int32_t> rank_;
  std::vector<int64_t> bound_;   // per buffer: it lies here or higher
  std::vector<int64_t> fit_;     // per buffer: the lowest place that no placed buffer takes
  std::vector<int64_t> offset_;  // per buffer, once placed
  std::vector<Section> sections_;
  std::vector<int32_t> crossing_;  // unplaced buffers in both section s - 1 and s
  std::vector<Change> trail_;
  std::vector<uint8_t> is_dirty_;
  std::vector<int32_t> dirty_;  // sections whose floor must be looked at again
  int64_t capacity_ = 0;
  int64_t nodes_ = 0;
  OffsetLimits limits_;
  int64_t deadline_ns_ = 0;
  bool is_stopped_ = false;
};

}  // namespace regal
