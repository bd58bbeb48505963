#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "problem.h"

namespace regal {

// What one step does to memory, relative to the bytes live before it.
struct Effect {
  int64_t during;  // most bytes on top of the live ones, workspace included
  int64_t after;   // change of the live bytes once the step is over
};

// An OrderProblem as the hot loops read it. Whatever holds in every legal order is summed up
// per op; a storage keeps a counter only if its first or its last toucher depends on the order.
// In a typical graph that leaves the tensors with several readers.
class CompactProblem {
 public:
  explicit CompactProblem(const OrderProblem& problem);

  struct OpRow {
    int64_t during;     // fixed part of the effect
    int64_t after;
    int32_t counted;    // its counters are counted[counted .. counted of the next row)
    int32_t pairs;      // likewise its in-place pairs
    int32_t successors;
    int32_t is_plain;   // its counters can only free, and no pair needs a counter
  };
  struct Counter {
    int64_t freed;      // bytes that the last toucher frees: 0 for an output
    int64_t allocated;  // bytes that the first toucher allocates: 0 if that is a fixed part
    int32_t touchers;
    int32_t among;      // xor of its touchers: names the last one when the others are taken out
    int32_t readers;    // its touchers are readers[readers .. + touchers)
  };
  // A pair that some orders allow. A counter of -1 is a condition that always holds.
  struct Pair {
    int64_t bytes;
    int32_t in;
    int32_t out;
    int32_t in_counter;
    int32_t out_counter;
  };

  int32_t n_ops() const { return static_cast<int32_t>(waiting.size()); }
  std::span<const int32_t> successors_of(int32_t op) const {
    return {successors.data() + rows[op].successors, successors.data() + rows[op + 1].successors};
  }
  std::span<const int32_t> counters_of(int32_t op) const {
    return {counted.data() + rows[op].counted, counted.data() + rows[op + 1].counted};
  }

  // The effect of `op` if it ran now; left[c] = touchers of counter c that have yet to run.
  Effect effect_of(int32_t op, const int32_t* left) const;

  // The peak of a legal order. `left` is scratch of n counters. Equals simulate().
  // Cost: O(n + counted touches), without allocation.
  int64_t peak_of(std::span<const int32_t> order, std::vector<int32_t>& left) const;

  const OrderProblem* source;
  std::vector<OpRow> rows;           // n + 1
  std::vector<int32_t> counted;
  std::vector<int32_t> successors;
  std::vector<Pair> pairs;
  std::vector<Counter> counters;
  std::vector<int32_t> readers;
  std::vector<int32_t> untouched;    // per counter: its touchers; where `left` starts
  std::vector<int32_t> waiting;      // per op: its predecessors
  std::vector<int64_t> freed;        // per counter, as in `counters`: what peak_of reads
  int64_t start_bytes = 0;           // live before step 0
  int64_t most_touched = 0;          // bytes of the storages of the op that touches most

 private:
  void add_storage(int32_t storage, std::vector<int32_t>& counter_of);
  void add_pairs(int32_t op, const std::vector<int32_t>& counter_of);
};

inline Effect CompactProblem::effect_of(int32_t op, const int32_t* left) const {
  const OpRow& row = rows[op];
  const OpRow& next = rows[op + 1];
  Effect effect{row.during, row.after};
  for (int32_t i = row.counted; i < next.counted; ++i) {
    const Counter& counter = counters[counted[i]];
    const int32_t n = left[counted[i]];
    if (n == 1) effect.after -= counter.freed;
    if (n == counter.touchers) {
      effect.during += counter.allocated;
      effect.after += counter.allocated;
    }
  }
  uint64_t taken = 0;
  for (int32_t i = row.pairs; i < next.pairs; ++i) {
    const Pair& pair = pairs[i];
    bool possible = (pair.in_counter < 0 || left[pair.in_counter] == 1) &&
                    (pair.out_counter < 0 ||
                     left[pair.out_counter] == counters[pair.out_counter].touchers);
    for (int32_t j = row.pairs; j < i && possible; ++j) {
      const bool shares = pairs[j].in == pair.in || pairs[j].out == pair.out;
      possible = !(shares && (taken >> (j - row.pairs) & 1));
    }
    if (!possible) continue;
    taken |= uint64_t{1} << (i - row.pairs);
    effect.during -= pair.bytes;
  }
  return effect;
}

}  // namespace regal
