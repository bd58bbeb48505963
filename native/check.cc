#include "check.h"

#include <algorithm>
#include <map>
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
  for (int64_t i = 0; i < n; ++i) {
    const Buffer& a = buffers[i];
    if (a.bytes <= 0) return {OffsetFault::Empty, i, -1};
    if (a.first_step > a.last_step) return {OffsetFault::Inverted, i, -1};
    if (a.offset < 0) return {OffsetFault::Negative, i, -1};
    if (a.offset % alignment != 0) return {OffsetFault::Misaligned, i, -1};
    if (a.bytes > arena_bytes || a.offset > arena_bytes - a.bytes) return {OffsetFault::PastEnd, i, -1};
    for (int64_t j = 0; j < i; ++j) {
      const Buffer& b = buffers[j];
      const bool share_time = a.first_step <= b.last_step && b.first_step <= a.last_step;
      const bool share_space = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      if (share_time && share_space) return {OffsetFault::Overlap, i, j};
    }
  }
  return {};
}

}  // namespace regal
