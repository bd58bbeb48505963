#include "heuristics.h"

#include <algorithm>
#include <numeric>

#include "compact.h"
#include "decode.h"

namespace regal {
namespace {

// Per op: the bytes that its step adds while others have yet to read its inputs.
std::vector<int64_t> added_bytes(const CompactProblem& compact) {
  std::vector<int64_t> bytes(compact.n_ops());
  for (int32_t v = 0; v < compact.n_ops(); ++v) {
    bytes[v] = std::max<int64_t>(compact.effect_of(v, compact.untouched.data()).during, 0);
  }
  return bytes;
}

// Ranks as keys: the op that comes last under `is_before` gets the lowest key.
template <typename Before>
std::vector<uint32_t> keys_by(int32_t n_ops, const Before& is_before) {
  std::vector<int32_t> ops(n_ops);
  std::iota(ops.begin(), ops.end(), 0);
  std::stable_sort(ops.begin(), ops.end(), is_before);
  std::vector<uint32_t> keys(n_ops);
  for (int32_t rank = 0; rank < n_ops; ++rank) {
    keys[ops[rank]] = static_cast<uint32_t>(n_ops - rank);
  }
  return keys;
}

// Sums over the subtree below each op; an op that several ops read counts for each of them, as
// in XLA. Sums stop growing at 2^62.
std::vector<int64_t> subtree_sums(const OrderProblem& problem, std::vector<int64_t> sums) {
  constexpr int64_t kMost = int64_t{1} << 62;
  for (const int32_t v : classic_order(problem, Classic::FileOrder)) {
    for (const int32_t u : problem.predecessors[v]) {
      sums[v] = sums[v] > kMost - sums[u] ? kMost : sums[v] + sums[u];
    }
  }
  return sums;
}

std::vector<int32_t> breadth_first(const OrderProblem& problem) {
  std::vector<int32_t> order, waiting(problem.n_ops);
  order.reserve(problem.n_ops);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    waiting[v] = static_cast<int32_t>(problem.predecessors[v].size());
    if (waiting[v] == 0) order.push_back(v);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (const int32_t w : problem.successors[order[i]]) {
      if (--waiting[w] == 0) order.push_back(w);
    }
  }
  return order;
}

std::vector<uint32_t> dfs_keys(const OrderProblem& problem, const CompactProblem& compact,
                               Classic classic) {
  const int32_t n = problem.n_ops;
  const std::vector<int64_t> own = added_bytes(compact);
  if (classic == Classic::OrtDefault) {
    return keys_by(n, [](int32_t a, int32_t b) { return a > b; });
  }
  if (classic == Classic::DfsSmall) {
    std::vector<int64_t> touched(n, 0);
    for (int32_t v = 0; v < n; ++v) {
      for (const int32_t s : problem.touched[v]) touched[v] += problem.bytes[s];
    }
    return keys_by(n, [&](int32_t a, int32_t b) { return touched[a] < touched[b]; });
  }
  const std::vector<int64_t> weights = subtree_sums(problem, own);
  if (classic == Classic::DfsLarge) {
    return keys_by(n, [&](int32_t a, int32_t b) { return weights[a] > weights[b]; });
  }
  std::vector<int64_t> extra(n);
  for (int32_t v = 0; v < n; ++v) {
    extra[v] = std::max<int64_t>(static_cast<int64_t>(problem.successors[v].size()) - 1, 0);
  }
  const std::vector<int64_t> users = subtree_sums(problem, extra);
  return keys_by(n, [&](int32_t a, int32_t b) {
    return users[a] != users[b] ? users[a] > users[b] : weights[a] > weights[b];
  });
}

}  // namespace

std::vector<int32_t> classic_order(const OrderProblem& problem, Classic classic) {
  if (classic == Classic::Bfs) return breadth_first(problem);
  if (classic == Classic::Lpmf) {
    OrderProblem blind = problem;
    blind.in_place.clear();
    std::fill(blind.in_place_of.begin(), blind.in_place_of.end(), 0);
    std::fill(blind.workspace.begin(), blind.workspace.end(), 0);
    return classic_order(blind, Classic::GreedyMemory);
  }
  const CompactProblem compact(problem);
  std::vector<uint32_t> keys(problem.n_ops, kNeutralKey);
  Decoder decoder = Decoder::Dfs;
  switch (classic) {
    case Classic::FileOrder: decoder = Decoder::Raw; break;
    case Classic::GreedyMemory: decoder = Decoder::Greedy; break;
    case Classic::Safe: decoder = Decoder::Forced; break;
    case Classic::XlaList:
      decoder = Decoder::Bent;
      for (int32_t v = 0; v < problem.n_ops; ++v) {
        keys[v] = static_cast<uint32_t>(problem.successors[v].size());
      }
      break;
    case Classic::Dfs: break;
    default: keys = dfs_keys(problem, compact, classic);
  }
  OrderDecoder decoding(compact);
  decoding.decode(decoder, keys, 0);
  return {decoding.order().begin(), decoding.order().end()};
}

}  // namespace regal
