// Decoders that look at keys alone.
#include <algorithm>

#include "decode.h"

namespace regal {
namespace {

// Sorts by key, then by lower op: the largest word is the op to run first.
uint64_t word_of(uint32_t key, int32_t op) {
  return static_cast<uint64_t>(key) << 32 | (~static_cast<uint32_t>(op));
}

int32_t op_of(uint64_t word) { return static_cast<int32_t>(~static_cast<uint32_t>(word)); }

}  // namespace

OrderDecoder::OrderDecoder(const CompactProblem& problem)
    : problem_(&problem), ready_(problem.n_ops()) {
  order_.reserve(problem.n_ops());
}

int64_t OrderDecoder::decode(Decoder decoder, std::span<const uint32_t> keys, uint32_t weight) {
  order_.clear();
  switch (decoder) {
    case Decoder::Raw: decode_raw(keys); break;
    case Decoder::Dfs: decode_dfs(keys); break;
    case Decoder::Greedy: return decode_by_bytes<Decoder::Greedy>(keys, weight);
    case Decoder::Bent: return decode_by_bytes<Decoder::Bent>(keys, weight);
    case Decoder::Forced: return decode_by_bytes<Decoder::Forced>(keys, weight);
  }
  return problem_->peak_of(order_, left_);
}

void OrderDecoder::decode_raw(std::span<const uint32_t> keys) {
  const CompactProblem& p = *problem_;
  waiting_ = p.waiting;
  heap_.clear();
  for (int32_t v = 0; v < p.n_ops(); ++v) {
    if (waiting_[v] == 0) heap_.push_back(word_of(keys[v], v));
  }
  std::make_heap(heap_.begin(), heap_.end());
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const int32_t v = op_of(heap_.back());
    heap_.pop_back();
    order_.push_back(v);
    for (const int32_t w : p.successors_of(v)) {
      if (--waiting_[w] > 0) continue;
      heap_.push_back(word_of(keys[w], w));
      std::push_heap(heap_.begin(), heap_.end());
    }
  }
}

// An entry of the stack is an op to enter, or ~op to leave.
void OrderDecoder::decode_dfs(std::span<const uint32_t> keys) {
  const CompactProblem& p = *problem_;
  const OrderProblem& source = *p.source;
  visited_.assign(p.n_ops(), 0);
  stack_.clear();
  const auto push_sorted = [&] {
    std::sort(heap_.begin(), heap_.end());
    for (const uint64_t word : heap_) stack_.push_back(op_of(word));
  };
  heap_.clear();
  for (int32_t v = 0; v < p.n_ops(); ++v) {
    if (p.successors_of(v).empty()) heap_.push_back(word_of(keys[v], v));
  }
  push_sorted();
  while (!stack_.empty()) {
    const int32_t v = stack_.back();
    stack_.pop_back();
    if (v < 0) {
      order_.push_back(~v);
      continue;
    }
    if (visited_[v]) continue;
    visited_[v] = 1;
    stack_.push_back(~v);
    heap_.clear();
    for (const int32_t u : source.predecessors[v]) {
      if (!visited_[u]) heap_.push_back(word_of(keys[u], u));
    }
    push_sorted();
  }
}

}  // namespace regal
