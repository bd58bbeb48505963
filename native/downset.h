#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "problem.h"
#include "rng.h"
#include "simulate.h"

namespace regal {

// The ops that already ran: a set closed under predecessors. Grows by run, shrinks by undo, last
// in first out. Everything that still can happen, and at what cost, depends on this set alone.
class Downset {
 public:
  explicit Downset(const OrderProblem& problem);

  // Keeps `ops` from ever becoming ready: they run last, after all others.
  void hold_back(std::span<const int32_t> ops);

  LiveMemory::Effect effect_of(int32_t op) const { return memory_.effect_of(op); }

  // Runs `op`, which must be in ready(). Cost: its touches and successors.
  void run(int32_t op);

  // Takes back the op that ran last.
  void undo();

  // Takes ops back until `size` are left.
  void undo_to(int32_t size) {
    while (this->size() > size) undo();
  }

  // True if some op waits for `op` alone.
  bool unlocks_any(int32_t op) const {
    for (const int32_t w : problem_->successors[op]) {
      if (waiting_for_[w] == 1) return true;
    }
    return false;
  }
  bool has(int32_t op) const { return bits_[op / 64] >> (op % 64) & 1; }
  int32_t size() const { return static_cast<int32_t>(order_.size()); }
  // True once all ops ran that are not held back.
  bool is_full() const { return size() == goal_; }
  int64_t live_bytes() const { return memory_.live_bytes(); }
  std::span<const int32_t> ready() const { return ready_; }   // in no useful sequence
  std::span<const int32_t> order() const { return order_; }   // the ops that ran, in sequence
  std::span<const uint64_t> bits() const { return bits_; }    // bit v: op v ran
  uint64_t hash() const { return hash_; }                     // of bits(), kept up to date

 private:
  const OrderProblem* problem_;
  LiveMemory memory_;
  std::vector<int32_t> waiting_for_;  // per op: predecessors that have yet to run
  std::vector<int32_t> ready_;
  std::vector<int32_t> place_;        // per op that ran: where in ready_ it was
  std::vector<int32_t> order_;
  std::vector<uint64_t> bits_;
  uint64_t hash_ = 0;
  int32_t goal_;
};

// A well-mixed 64-bit number for an op (Zobrist hashing).
inline uint64_t zobrist(int32_t op) { return mixed(static_cast<uint64_t>(op) * 0x9e3779b97f4a7c15u); }

// Distinct bit sets of one width, found by hash and compared in full.
class BitsetTable {
 public:
  explicit BitsetTable(size_t words);

  // True if the set was not there yet.
  bool insert(std::span<const uint64_t> bits, uint64_t hash);

  int64_t size() const { return size_; }

 private:
  void grow();

  size_t words_;
  int64_t size_ = 0;
  std::vector<uint64_t> sets_;    // words_ each, in order of insertion
  std::vector<uint64_t> hashes_;
  std::vector<int32_t> slots_;    // power of two; -1 where free
};

}  // namespace regal
