#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "problem.h"

namespace regal {

// The state of a run that stops after some ops: which storages are live, and how many bytes.
// The reference: exact search and beam run on it, and tests hold CompactProblem against it.
class LiveMemory {
 public:
  explicit LiveMemory(const OrderProblem& problem);

  // Back to the state before step 0.
  void reset();

  struct Effect {
    int64_t during;  // bytes live during the step, workspace included
    int64_t after;   // bytes live once it is over
  };
  // Both numbers of the step of `op` if it ran now, for the price of one.
  Effect effect_of(int32_t op) const;

  // Bytes live during the step of `op` if it ran now, workspace included.
  int64_t bytes_during(int32_t op) const;

  // Bytes live after that step, minus the bytes live now.
  int64_t change_after(int32_t op) const;

  // Runs `op`; returns the bytes live during its step.
  int64_t run(int32_t op);

  // Takes `op`, the last one that ran, back; the peak stays.
  void undo(int32_t op);

  // Which pairs of problem.in_place happen if `op` runs now: bit i is the i-th pair of `op`.
  // Pairs are tried in order; a storage takes part at most once; pairs past the 64th never happen.
  uint64_t in_place_at(int32_t op) const;

  // How many ops have yet to touch a storage.
  int32_t touchers_left(int32_t storage) const { return left_[storage]; }

  int64_t live_bytes() const { return live_; }
  int64_t peak_bytes() const { return peak_; }

 private:
  const OrderProblem* problem_;
  std::vector<int32_t> left_;  // per storage: ops that have yet to touch it
  int64_t live_ = 0;
  int64_t peak_ = 0;
};

struct Simulation {
  int64_t peak_bytes = 0;
  int64_t peak_step = -1;               // the first step that reaches the peak
  std::vector<int64_t> bytes_at_step;   // live + workspace, per step
  std::vector<InPlace> in_place;        // pairs that happened: always when possible
};

// Runs `order`, which must be a permutation with predecessors first (see check_order).
// Cost: O(n + touches).
Simulation simulate(const OrderProblem& problem, std::span<const int32_t> order);

// Only the peak, with memory that the caller keeps between calls.
int64_t peak_of(std::span<const int32_t> order, LiveMemory& memory);

}  // namespace regal
