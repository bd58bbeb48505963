#include "reduce.h"

#include <algorithm>
#include <limits>

#include "bounds.h"

namespace regal {

OrderProblem reversed(const OrderProblem& problem) {
  OrderProblem result = problem;
  std::swap(result.predecessors, result.successors);
  std::swap(result.is_input, result.is_output);
  // An output without touchers that is no input never lives; turned around it must not either.
  for (int32_t s = 0; s < problem.n_storages; ++s) {
    if (problem.touchers[s].empty() && !(problem.is_input[s] && problem.is_output[s])) {
      result.is_input[s] = result.is_output[s] = 0;
    }
  }
  for (InPlace& pair : result.in_place) std::swap(pair.in, pair.out);
  return result;
}

Part part_of(const OrderProblem& problem, std::span<const When> when) {
  Part part;
  std::vector<int64_t> part_op(problem.n_ops, -1);
  std::vector<int64_t> edges, touches, bytes, workspace, inputs, outputs, in_place;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    if (when[v] != When::Inside) continue;
    part_op[v] = static_cast<int64_t>(part.ops.size());
    part.ops.push_back(v);
    workspace.push_back(problem.workspace[v]);
  }
  for (const int32_t v : part.ops) {
    for (const int32_t w : problem.successors[v]) {
      if (part_op[w] >= 0) edges.insert(edges.end(), {part_op[v], part_op[w]});
    }
  }
  int64_t resident = 0;  // bytes of storages that live all the time and that nobody inside touches
  std::vector<int64_t> part_storage(problem.n_storages, -1);
  std::vector<uint8_t> is_input(problem.n_storages), is_output(problem.n_storages);
  for (int32_t s = 0; s < problem.n_storages; ++s) {
    bool inside = false, before = problem.is_input[s], after = problem.is_output[s];
    for (const int32_t v : problem.touchers[s]) {
      inside = inside || when[v] == When::Inside;
      before = before || when[v] == When::Before;
      after = after || when[v] == When::After;
    }
    is_input[s] = before;
    is_output[s] = after;
    if (!inside) {
      if (before && after) resident += problem.bytes[s];
      continue;
    }
    const auto id = static_cast<int64_t>(bytes.size());
    part_storage[s] = id;
    bytes.push_back(problem.bytes[s]);
    if (before) inputs.push_back(id);
    if (after) outputs.push_back(id);
    for (const int32_t v : problem.touchers[s]) {
      if (part_op[v] >= 0) touches.insert(touches.end(), {part_op[v], id});
    }
  }
  if (resident > 0) {
    inputs.push_back(static_cast<int64_t>(bytes.size()));
    outputs.push_back(static_cast<int64_t>(bytes.size()));
    bytes.push_back(resident);
  }
  for (const InPlace& pair : problem.in_place) {
    if (part_op[pair.op] < 0 || is_output[pair.in] || is_input[pair.out]) continue;
    in_place.insert(in_place.end(), {part_op[pair.op], part_storage[pair.in], part_storage[pair.out]});
  }
  build_problem({edges, touches, bytes, workspace, inputs, outputs, in_place}, part.problem);
  return part;
}

std::vector<uint8_t> free_ops(const OrderProblem& problem) {
  const auto is_among = [&](std::span<const int32_t> ops, int32_t storage) {
    return std::any_of(ops.begin(), ops.end(), [&](int32_t op) { return problem.touches(op, storage); });
  };
  std::vector<uint8_t> is_free(problem.n_ops, 0);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    if (problem.workspace[v] > 0) continue;
    const auto row = problem.touched[v];
    is_free[v] = std::all_of(row.begin(), row.end(), [&](int32_t s) {
      return problem.bytes[s] == 0 || ((problem.is_input[s] || is_among(problem.predecessors[v], s)) &&
                                       (problem.is_output[s] || is_among(problem.successors[v], s)));
    });
  }
  return is_free;
}

std::vector<int32_t> segments_of(const OrderProblem& problem) {
  const int32_t n = problem.n_ops;
  const std::vector<uint8_t> is_free = free_ops(problem);
  const std::vector<int32_t> order = topological_order(problem);
  // Positions count only the ops with effect. From and to such ops, paths may run through free ones:
  // `latest[v]` is the last position among the ancestors that reach v through free ops alone.
  std::vector<int32_t> position(n, -1), latest(n, -1), earliest(n, n);
  int32_t count = 0;
  for (const int32_t v : order) {
    if (!is_free[v]) position[v] = count++;
    for (const int32_t u : problem.predecessors[v]) {
      latest[v] = std::max(latest[v], is_free[u] ? latest[u] : position[u]);
    }
  }
  for (auto v = order.rbegin(); v != order.rend(); ++v) {
    for (const int32_t w : problem.successors[*v]) {
      earliest[*v] = std::min(earliest[*v], is_free[w] ? earliest[w] : position[w]);
    }
  }
  // The op at position p is comparable with all others if every later op has an ancestor at p or later
  // (by induction: the op itself or a descendant of it), and every earlier op a descendant at p or earlier.
  std::vector<int32_t> least_latest(count + 1, n), most_earliest(count + 1, -1);
  std::vector<int32_t> at(count);
  for (const int32_t v : order) {
    if (!is_free[v]) at[position[v]] = v;
  }
  for (int32_t p = count - 1; p >= 0; --p) least_latest[p] = std::min(least_latest[p + 1], latest[at[p]]);
  for (int32_t p = 0; p < count; ++p) most_earliest[p + 1] = std::max(most_earliest[p], earliest[at[p]]);
  std::vector<int32_t> segment_at(count);
  int32_t segment = 0;
  for (int32_t p = 0; p < count; ++p) {
    segment_at[p] = segment;
    if (least_latest[p + 1] >= p && most_earliest[p] <= p) ++segment;
  }
  std::vector<int32_t> segments(n, 0);
  for (const int32_t v : order) {
    if (!is_free[v]) segments[v] = segment_at[position[v]];
    else if (latest[v] >= 0) segments[v] = segment_at[latest[v]];
  }
  return segments;
}

}  // namespace regal
