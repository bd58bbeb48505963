#include "problem.h"

#include <algorithm>
#include <utility>

namespace regal {
namespace {

// Every sum of sizes stays below this, so sums of two sums still fit in int64.
constexpr int64_t kMostBytes = int64_t{1} << 61;

using Pairs = std::vector<std::pair<int32_t, int32_t>>;

Pairs swapped(const Pairs& pairs) {
  Pairs result;
  result.reserve(pairs.size());
  for (const auto& [a, b] : pairs) result.emplace_back(b, a);
  return result;
}

bool read_pairs(std::span<const int64_t> flat, int64_t rows, int64_t columns, Pairs& pairs,
                int64_t& guilty) {
  for (size_t i = 0; i + 1 < flat.size(); i += 2) {
    if (flat[i] < 0 || flat[i] >= rows || flat[i + 1] < 0 || flat[i + 1] >= columns) {
      guilty = static_cast<int64_t>(i / 2);
      return false;
    }
    pairs.emplace_back(static_cast<int32_t>(flat[i]), static_cast<int32_t>(flat[i + 1]));
  }
  return true;
}

bool mark(std::span<const int64_t> ids, std::vector<uint8_t>& flags, int64_t& guilty) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= static_cast<int64_t>(flags.size())) {
      guilty = static_cast<int64_t>(i);
      return false;
    }
    flags[ids[i]] = 1;
  }
  return true;
}

ProblemVerdict check_sizes(const OrderProblem& problem) {
  int64_t total = 0;
  for (const auto* sizes : {&problem.bytes, &problem.workspace}) {
    for (size_t i = 0; i < sizes->size(); ++i) {
      const int64_t size = (*sizes)[i];
      if (size < 0) return {ProblemFault::NegativeSize, static_cast<int64_t>(i)};
      if (size > kMostBytes - total) return {ProblemFault::TooLarge, static_cast<int64_t>(i)};
      total += size;
    }
  }
  return {};
}

ProblemVerdict check_acyclic(const OrderProblem& problem) {
  std::vector<int32_t> waiting(problem.n_ops);
  std::vector<int32_t> ready;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    waiting[v] = static_cast<int32_t>(problem.predecessors[v].size());
    if (waiting[v] == 0) ready.push_back(v);
  }
  int32_t done = 0;
  while (!ready.empty()) {
    const int32_t v = ready.back();
    ready.pop_back();
    ++done;
    for (const int32_t w : problem.successors[v]) {
      if (--waiting[w] == 0) ready.push_back(w);
    }
  }
  if (done == problem.n_ops) return {};
  // Walk backwards from a blocked op, always to a blocked predecessor: that ends in a cycle.
  int32_t v = 0;
  while (waiting[v] == 0) ++v;
  for (int32_t steps = 0; steps < problem.n_ops; ++steps) {
    for (const int32_t u : problem.predecessors[v]) {
      if (waiting[u] > 0) {
        v = u;
        break;
      }
    }
  }
  return {ProblemFault::Cycle, v};
}

ProblemVerdict read_in_place(std::span<const int64_t> flat, OrderProblem& problem) {
  for (size_t i = 0; i + 2 < flat.size(); i += 3) {
    const auto row = static_cast<int64_t>(i / 3);
    const int64_t op = flat[i], in = flat[i + 1], out = flat[i + 2];
    if (op < 0 || op >= problem.n_ops || in < 0 || in >= problem.n_storages || out < 0 ||
        out >= problem.n_storages) {
      return {ProblemFault::BadIndex, row};
    }
    const InPlace pair{static_cast<int32_t>(op), static_cast<int32_t>(in), static_cast<int32_t>(out)};
    const bool legal = in != out && problem.bytes[in] == problem.bytes[out] &&
                       !problem.is_output[in] && !problem.is_input[out] &&
                       problem.touches(pair.op, pair.in) && problem.touches(pair.op, pair.out);
    if (!legal) return {ProblemFault::BadInPlace, row};
    problem.in_place.push_back(pair);
  }
  std::stable_sort(problem.in_place.begin(), problem.in_place.end(),
                   [](const InPlace& a, const InPlace& b) { return a.op < b.op; });
  problem.in_place_of.assign(problem.n_ops + 1, 0);
  for (const InPlace& pair : problem.in_place) ++problem.in_place_of[pair.op + 1];
  for (int32_t v = 0; v < problem.n_ops; ++v) problem.in_place_of[v + 1] += problem.in_place_of[v];
  return {};
}

}  // namespace

Csr csr_of(std::vector<std::pair<int32_t, int32_t>> pairs, int64_t rows) {
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  Csr csr;
  csr.start.assign(rows + 1, 0);
  csr.item.reserve(pairs.size());
  for (const auto& [row, item] : pairs) {
    ++csr.start[row + 1];
    csr.item.push_back(item);
  }
  for (int64_t i = 0; i < rows; ++i) csr.start[i + 1] += csr.start[i];
  return csr;
}

ProblemVerdict build_problem(const OrderInput& input, OrderProblem& problem) {
  problem = {};
  constexpr size_t kMostRows = (size_t{1} << 31) - 2;
  if (input.workspace.size() > kMostRows || input.bytes.size() > kMostRows) {
    return {ProblemFault::TooLarge, -1};
  }
  problem.n_ops = static_cast<int32_t>(input.workspace.size());
  problem.n_storages = static_cast<int32_t>(input.bytes.size());
  problem.bytes.assign(input.bytes.begin(), input.bytes.end());
  problem.workspace.assign(input.workspace.begin(), input.workspace.end());
  problem.is_input.assign(problem.n_storages, 0);
  problem.is_output.assign(problem.n_storages, 0);

  int64_t guilty = -1;
  Pairs edges, touches;
  if (!read_pairs(input.edges, problem.n_ops, problem.n_ops, edges, guilty) ||
      !read_pairs(input.touches, problem.n_ops, problem.n_storages, touches, guilty) ||
      !mark(input.input_storages, problem.is_input, guilty) ||
      !mark(input.output_storages, problem.is_output, guilty)) {
    return {ProblemFault::BadIndex, guilty};
  }
  if (const ProblemVerdict verdict = check_sizes(problem); verdict.fault != ProblemFault::None) {
    return verdict;
  }
  problem.predecessors = csr_of(swapped(edges), problem.n_ops);
  problem.successors = csr_of(std::move(edges), problem.n_ops);
  problem.touchers = csr_of(swapped(touches), problem.n_storages);
  problem.touched = csr_of(std::move(touches), problem.n_ops);
  if (const ProblemVerdict verdict = check_acyclic(problem); verdict.fault != ProblemFault::None) {
    return verdict;
  }
  return read_in_place(input.in_place, problem);
}

}  // namespace regal
