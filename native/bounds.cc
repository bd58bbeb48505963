#include "bounds.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <queue>

#include "reduce.h"
#include "simulate.h"

namespace regal {
namespace {

constexpr int32_t kWords = 8;
constexpr int32_t kBlock = 64 * kWords;  // storages handled together

struct Block {
  uint64_t word[kWords] = {};
  void add(const Block& other) {
    for (int32_t i = 0; i < kWords; ++i) word[i] |= other.word[i];
  }
  bool has(int32_t i) const { return word[i / 64] >> (i % 64) & 1; }
  void set(int32_t i) { word[i / 64] |= uint64_t{1} << (i % 64); }
};

// For storages [first, first + kBlock): which are surely started when each op runs.
// With `rows` = successors and the order turned around: which surely still have a toucher to come.
std::vector<Block> reached(const OrderProblem& problem, const std::vector<int32_t>& order, const Csr& rows,
                           const std::vector<uint8_t>& always, int32_t first) {
  const int32_t end = std::min(first + kBlock, problem.n_storages);
  Block start;
  for (int32_t s = first; s < end; ++s) {
    if (always[s]) start.set(s - first);
  }
  std::vector<Block> blocks(problem.n_ops, start);
  for (const int32_t v : order) {
    for (const int32_t u : rows[v]) blocks[v].add(blocks[u]);
    for (const int32_t s : problem.touched[v]) {
      if (s >= first && s < end) blocks[v].set(s - first);
    }
  }
  return blocks;
}

int64_t cheapest_first_step(const OrderProblem& problem) {
  const LiveMemory memory(problem);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    if (problem.predecessors[v].empty()) least = std::min(least, memory.bytes_during(v));
  }
  return problem.n_ops == 0 ? 0 : least;
}

}  // namespace

std::vector<int32_t> topological_order(const OrderProblem& problem) {
  std::vector<int32_t> waiting_for(problem.n_ops), order;
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    waiting_for[v] = static_cast<int32_t>(problem.predecessors[v].size());
    if (waiting_for[v] == 0) ready.push(v);
  }
  while (!ready.empty()) {
    const int32_t v = ready.top();
    ready.pop();
    order.push_back(v);
    for (const int32_t w : problem.successors[v]) {
      if (--waiting_for[w] == 0) ready.push(w);
    }
  }
  return order;
}

int64_t most_saved_in_place(const OrderProblem& problem, int32_t op) {
  const auto is_touched_by_any = [&](int32_t storage, std::span<const int32_t> ops) {
    return std::any_of(ops.begin(), ops.end(), [&](int32_t v) { return problem.touches(v, storage); });
  };
  int64_t by_in = 0, by_out = 0;
  std::vector<int32_t> ins, outs;
  for (int64_t i = problem.in_place_of[op]; i < problem.in_place_of[op + 1]; ++i) {
    const auto& [_, in, out] = problem.in_place[i];
    // The input is needed later, or the output begun earlier, whatever the order.
    if (is_touched_by_any(in, problem.successors[op]) || is_touched_by_any(out, problem.predecessors[op])) continue;
    if (std::find(ins.begin(), ins.end(), in) == ins.end()) by_in += problem.bytes[in];
    if (std::find(outs.begin(), outs.end(), out) == outs.end()) by_out += problem.bytes[out];
    ins.push_back(in);
    outs.push_back(out);
  }
  return std::min(by_in, by_out);
}

std::vector<int64_t> op_bounds(const OrderProblem& problem) {
  std::vector<int64_t> bounds = problem.workspace;
  const std::vector<int32_t> order = topological_order(problem);
  const std::vector<int32_t> backward(order.rbegin(), order.rend());
  for (int32_t first = 0; first < problem.n_storages; first += kBlock) {
    const auto started = reached(problem, order, problem.predecessors, problem.is_input, first);
    const auto needed = reached(problem, backward, problem.successors, problem.is_output, first);
    for (int32_t v = 0; v < problem.n_ops; ++v) {
      for (int32_t i = 0; i < kWords; ++i) {
        uint64_t live = started[v].word[i] & needed[v].word[i];
        for (; live != 0; live &= live - 1) bounds[v] += problem.bytes[first + 64 * i + std::countr_zero(live)];
      }
    }
  }
  for (int32_t v = 0; v < problem.n_ops; ++v) bounds[v] -= most_saved_in_place(problem, v);
  return bounds;
}

int64_t peak_bound(const OrderProblem& problem) {
  int64_t bound = std::max(cheapest_first_step(problem), cheapest_first_step(reversed(problem)));
  for (const int64_t during : op_bounds(problem)) bound = std::max(bound, during);
  return bound;
}

}  // namespace regal
