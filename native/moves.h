#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "compact.h"

namespace regal {

// An order with its bytes per step, changed by moves: two neighboring blocks of steps trade
// places. Only the steps of the two blocks are simulated again.
class MovableOrder {
 public:
  explicit MovableOrder(const CompactProblem& problem);

  // Starts over with a legal order. Cost: O(n + touches).
  void assign(std::span<const int32_t> order);

  std::span<const int32_t> order() const { return order_; }
  int64_t peak_bytes() const { return highest_[1]; }
  // Sum of the bytes of all steps; in units of 2^k bytes where plain bytes could pass 2^62.
  int64_t area() const { return area_; }

  // A step that reaches the peak; `choice` picks among several.
  int32_t peak_step(uint64_t choice) const;

  // The furthest end that the block [begin, end) can be moved to, later (earlier).
  int32_t latest_end(int32_t begin, int32_t end) const;
  int32_t earliest_begin(int32_t begin, int32_t end) const;

  struct Cost {
    int64_t peak_bytes;
    int64_t area;
  };
  // What the order would cost with blocks [begin, middle) and [middle, end) traded, which must
  // be legal. accept() then makes the last tried move real. Cost: O(touches of the two blocks).
  Cost try_move(int32_t begin, int32_t middle, int32_t end);
  void accept();

 private:
  struct Span {
    int32_t first;
    int32_t last;
  };

  int64_t highest_outside(int32_t begin, int32_t end) const;
  void simulate_window();
  void settle_counters();
  void settle_tree();

  const CompactProblem* problem_;
  std::vector<int32_t> order_;
  std::vector<int32_t> step_of_;
  std::vector<int64_t> live_before_;  // per step
  std::vector<int64_t> highest_;      // a heap-shaped tree of maxima over the steps; leaves last
  size_t leaves_ = 1;
  int32_t area_shift_ = 0;
  int64_t area_ = 0;
  std::vector<Span> counter_steps_;   // per counter: its first and last step
  std::vector<int32_t> left_;         // scratch per counter, 0 between calls
  // The move tried last.
  int32_t begin_ = 0;
  std::vector<int32_t> window_;
  std::vector<int64_t> during_;
  std::vector<int64_t> after_;
};

}  // namespace regal
