#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace regal {

// Rows of different length, stored flat: row i is item[start[i] .. start[i + 1]).
struct Csr {
  std::vector<int64_t> start;
  std::vector<int32_t> item;
  std::span<const int32_t> operator[](int64_t row) const {
    return {item.data() + start[row], static_cast<size_t>(start[row + 1] - start[row])};
  }
  int64_t rows() const { return static_cast<int64_t>(start.size()) - 1; }
};

// (row, item) pairs in any order become ascending rows without repeats.
Csr csr_of(std::vector<std::pair<int32_t, int32_t>> pairs, int64_t rows);

// `out` may take over the bytes of `in` when the op runs last on `in`.
struct InPlace {
  int32_t op;
  int32_t in;
  int32_t out;
};

// One device, one graph: in which order do the ops run?
// A storage is live from the first op that touches it to the last, both included;
// inputs from step 0, outputs to the end. The peak is the most live bytes + workspace of a step.
struct OrderProblem {
  int32_t n_ops = 0;
  int32_t n_storages = 0;
  Csr predecessors;                   // op -> ops that must run earlier, ascending, no repeats
  Csr successors;                     // the inverse
  Csr touched;                        // op -> storages it reads or writes, ascending, no repeats
  Csr touchers;                       // the inverse
  std::vector<int64_t> bytes;         // per storage, >= 0
  std::vector<int64_t> workspace;     // per op, >= 0: extra bytes during its own step
  std::vector<uint8_t> is_input;      // per storage: live from step 0
  std::vector<uint8_t> is_output;     // per storage: live to the end
  std::vector<InPlace> in_place;      // sorted by op; equal bytes; `in` is no output, `out` no input
  std::vector<int64_t> in_place_of;   // op -> its range in in_place: [in_place_of[v], in_place_of[v + 1])

  bool touches(int32_t op, int32_t storage) const {
    const auto row = touched[op];
    return std::binary_search(row.begin(), row.end(), storage);
  }
};

enum class ProblemFault { None, BadIndex, NegativeSize, TooLarge, Cycle, BadInPlace };

// `guilty` is the op (Cycle: one on a cycle), storage, or row that breaks the rule.
struct ProblemVerdict {
  ProblemFault fault = ProblemFault::None;
  int64_t guilty = -1;
};

// What the caller knows, as flat rows.
struct OrderInput {
  std::span<const int64_t> edges;          // (m, 2): earlier op, later op
  std::span<const int64_t> touches;        // (k, 2): op, storage
  std::span<const int64_t> bytes;          // (s,)
  std::span<const int64_t> workspace;      // (n,)
  std::span<const int64_t> input_storages;
  std::span<const int64_t> output_storages;
  std::span<const int64_t> in_place;       // (p, 3): op, in storage, out storage
};

// Fills `problem`. Sums of all sizes are bounded here once, so that int64 never overflows later.
// Cost: O((n + m + k) log).
ProblemVerdict build_problem(const OrderInput& input, OrderProblem& problem);

}  // namespace regal
