#include "check.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace regal {
namespace {

struct Interval {
  int64_t first = -1;
  int64_t last = -1;
  bool is_empty() const { return first < 0; }
};

// The steps in which each storage is live, from its users alone.
std::vector<Interval> intervals_of(const OrderProblem& problem, const std::vector<int64_t>& step_of) {
  const int64_t end = problem.n_ops - 1;
  std::vector<Interval> intervals(problem.n_storages);
  for (int32_t s = 0; s < problem.n_storages; ++s) {
    Interval& interval = intervals[s];
    for (const int32_t op : problem.touchers[s]) {
      const int64_t step = step_of[op];
      interval.first = interval.is_empty() ? step : std::min(interval.first, step);
      interval.last = std::max(interval.last, step);
    }
    if (problem.is_output[s] && (problem.is_input[s] || !interval.is_empty())) {
      if (interval.is_empty()) interval.first = 0;
      interval.last = end;
    }
    if (problem.is_input[s] && !interval.is_empty()) interval.first = 0;
  }
  return intervals;
}

bool is_allowed(const OrderProblem& problem, int64_t op, int64_t in, int64_t out) {
  if (op < 0 || op >= problem.n_ops) return false;
  const auto rows = problem.in_place.begin();
  return std::any_of(rows + problem.in_place_of[op], rows + problem.in_place_of[op + 1],
                     [&](const InPlace& pair) { return pair.in == in && pair.out == out; });
}

}  // namespace

OrderVerdict check_order(const OrderProblem& problem, std::span<const int64_t> order,
                         std::span<const int64_t> in_place) {
  const int64_t n = problem.n_ops;
  if (static_cast<int64_t>(order.size()) != n) return {OrderFault::NotAPermutation, -1, -1, 0};
  std::vector<int64_t> step_of(n, -1);
  for (int64_t step = 0; step < n; ++step) {
    const int64_t op = order[step];
    if (op < 0 || op >= n || step_of[op] >= 0) return {OrderFault::NotAPermutation, op, -1, 0};
    step_of[op] = step;
  }
  for (int64_t op = 0; op < n; ++op) {
    for (const int32_t earlier : problem.predecessors[op]) {
      if (step_of[earlier] >= step_of[op]) return {OrderFault::ReaderTooEarly, op, earlier, 0};
    }
  }

  std::vector<Interval> intervals = intervals_of(problem, step_of);
  std::map<int64_t, int64_t> taken_by;  // storage -> in-place row; in and out side kept apart
  std::map<int64_t, int64_t> takes;
  std::vector<int64_t> change(n + 1, 0);
  for (size_t i = 0; i + 2 < in_place.size(); i += 3) {
    const auto row = static_cast<int64_t>(i / 3);
    const int64_t op = in_place[i], in = in_place[i + 1], out = in_place[i + 2];
    if (!is_allowed(problem, op, in, out)) return {OrderFault::InPlaceNotAllowed, row, -1, 0};
    if (taken_by.contains(in)) return {OrderFault::InPlaceTwice, row, taken_by[in], 0};
    if (takes.contains(out)) return {OrderFault::InPlaceTwice, row, takes[out], 0};
    taken_by[in] = takes[out] = row;
    const bool meets = intervals[in].last == step_of[op] && intervals[out].first == step_of[op];
    if (!meets) return {OrderFault::InPlaceNotLast, row, order[intervals[in].last], 0};
    // Both are live in this one step; together they count once.
    change[step_of[op]] -= problem.bytes[in];
    change[step_of[op] + 1] += problem.bytes[in];
  }
  for (int32_t s = 0; s < problem.n_storages; ++s) {
    if (intervals[s].is_empty()) continue;
    change[intervals[s].first] += problem.bytes[s];
    change[intervals[s].last + 1] -= problem.bytes[s];
  }
  int64_t live = 0, peak = 0;
  for (int64_t step = 0; step < n; ++step) {
    live += change[step];
    peak = std::max(peak, live + problem.workspace[order[step]]);
  }
  return {OrderFault::None, -1, -1, peak};
}

OffsetVerdict check_offsets(std::span<const Buffer> buffers, int64_t arena_bytes, int64_t alignment) {
  const auto n = static_cast<int64_t>(buffers.size());
  const auto fault_of = [&](const Buffer& a) {
    if (a.bytes <= 0) return OffsetFault::Empty;
    if (a.first_step > a.last_step) return OffsetFault::Inverted;
    if (a.offset < 0) return OffsetFault::Negative;
    if (a.offset % alignment != 0) return OffsetFault::Misaligned;
    if (a.bytes > arena_bytes || a.offset > arena_bytes - a.bytes) return OffsetFault::PastEnd;
    return OffsetFault::None;
  };
  // Pairs are compared only among the buffers before the first that is wrong by itself.
  int64_t good = 0;
  while (good < n && fault_of(buffers[good]) == OffsetFault::None) ++good;
  std::vector<int64_t> by_start(good);
  std::iota(by_start.begin(), by_start.end(), 0);
  std::sort(by_start.begin(), by_start.end(), [&](int64_t i, int64_t j) {
    return std::tie(buffers[i].first_step, i) < std::tie(buffers[j].first_step, j);
  });
  std::pair<int64_t, int64_t> found{n, n};  // the pair that comes first in the caller's sequence
  for (int64_t x = 0; x < good; ++x) {
    const Buffer& a = buffers[by_start[x]];
    for (int64_t y = x + 1; y < good && buffers[by_start[y]].first_step <= a.last_step; ++y) {
      const Buffer& b = buffers[by_start[y]];
      const bool share_space = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      if (!share_space) continue;
      found = std::min(found, {std::max(by_start[x], by_start[y]), std::min(by_start[x], by_start[y])});
    }
  }
  if (found.first < n) return {OffsetFault::Overlap, found.first, found.second};
  if (good < n) return {fault_of(buffers[good]), good, -1};
  return {};
}

}  // namespace regal
