#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "compact.h"
#include "random_keys.h"
#include "ready_set.h"

namespace regal {

// How keys become an order. A higher key means earlier; equal keys give the plain heuristic.
enum class Decoder {
  Raw,     // the ready op with the highest key
  Dfs,     // post-order from the sinks, sinks and operands by key
  Greedy,  // least rise of the peak, then least change of the live bytes, then key
  Bent,    // least change of the live bytes, bent by the key
  Forced,  // like Bent, but an op that raises neither the peak nor the live bytes runs at once
};

// Turns keys into legal orders. One per thread; reuses its memory.
class OrderDecoder {
 public:
  explicit OrderDecoder(const CompactProblem& problem);

  // Decodes n keys; returns the peak bytes of order(). `weight` says how strongly keys bend the
  // byte counts of Bent and Forced: not at all with 0; with the most, the highest key counts like
  // freeing twice the bytes that any op touches.
  // Cost: O(touches + edges) plus a logarithm of the ready ops per step.
  int64_t decode(Decoder decoder, std::span<const uint32_t> keys, uint32_t weight);

  std::span<const int32_t> order() const { return order_; }

 private:
  void decode_raw(std::span<const uint32_t> keys);
  void decode_dfs(std::span<const uint32_t> keys);
  template <Decoder kind>
  int64_t decode_by_bytes(std::span<const uint32_t> keys, uint32_t weight);
  template <Decoder kind>
  ReadyOp ranked(std::span<const uint32_t> keys, int32_t op) const;
  template <Decoder kind>
  void insert_ready(std::span<const uint32_t> keys, int32_t op);
  template <Decoder kind>
  void count_touches(std::span<const uint32_t> keys, int32_t op);

  const CompactProblem* problem_;
  std::vector<int32_t> order_;
  std::vector<int32_t> waiting_;
  std::vector<int32_t> left_;    // per counter: touchers that have yet to run
  std::vector<int32_t> among_;   // per counter: xor of those
  std::vector<uint64_t> heap_;
  std::vector<int32_t> stack_;
  std::vector<uint8_t> visited_;
  ReadySet ready_;
  std::vector<Effect> effects_;  // per ready op: what it would do now
  int64_t bend_bytes_ = 0;       // by how much the highest key lowers a change
};

}  // namespace regal
