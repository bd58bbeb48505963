#include "exact_order.h"

#include <algorithm>
#include <utility>

#include "beam.h"
#include "bounds.h"
#include "order_within.h"
#include "reduce.h"
#include "simulate.h"

namespace regal {
namespace {

constexpr int32_t kNarrow = 8;
constexpr int32_t kWide = 100;

// A stretch of the order that is solved by itself.
struct Piece {
  Part part;
  std::vector<int32_t> order;  // the best known one, in the part's own ids
  int64_t peak = 0;
};

int64_t peak_in(const OrderProblem& problem, std::span<const int32_t> order) {
  LiveMemory memory(problem);
  return peak_of(order, memory);
}

void offer(Piece& piece, std::vector<int32_t> order) {
  if (order.empty()) return;
  const int64_t peak = peak_in(piece.part.problem, order);
  if (piece.order.empty() || peak < piece.peak) {
    piece.order = std::move(order);
    piece.peak = peak;
  }
}

std::vector<Piece> split(const OrderProblem& problem, std::span<const int32_t> start) {
  const std::vector<int32_t> segments = segments_of(problem);
  const int32_t count = 1 + *std::max_element(segments.begin(), segments.end());
  std::vector<int32_t> place(problem.n_ops);
  for (size_t i = 0; i < start.size(); ++i) place[start[i]] = static_cast<int32_t>(i);
  std::vector<Piece> pieces(count);
  std::vector<When> when(problem.n_ops);
  for (int32_t k = 0; k < count; ++k) {
    for (int32_t v = 0; v < problem.n_ops; ++v) {
      when[v] = segments[v] < k ? When::Before : segments[v] > k ? When::After : When::Inside;
    }
    Part part = part_of(problem, when);
    std::vector<int32_t> order(part.ops.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return place[part.ops[a]] < place[part.ops[b]]; });
    pieces[k].part = std::move(part);
    offer(pieces[k], std::move(order));
  }
  return pieces;
}

// Narrows [bound, peak] of a piece until they meet or the effort is gone. Returns the proven bound:
// no order of the piece has a peak below it.
int64_t close_gap(Piece& piece, int64_t bound, Effort& effort) {
  const OrderProblem& problem = piece.part.problem;
  const OrderProblem backward = reversed(problem);
  const auto ask = [&](int64_t budget, int64_t most) {
    // Which end is easier to start from depends on the graph; neither is known beforehand.
    OrderWithin found;
    for (int64_t states = 1000; found.answer == Answer::Unknown && states < most; states *= 8) {
      for (const bool is_backward : {false, true}) {
        Effort share = effort.share(states);
        found = order_within(is_backward ? backward : problem, budget, share);
        effort.add(share);
        if (found.answer == Answer::Unknown) continue;
        if (is_backward) std::reverse(found.order.begin(), found.order.end());
        break;
      }
    }
    if (found.answer == Answer::Yes) offer(piece, std::move(found.order));
    if (found.answer == Answer::No) bound = std::max(bound, std::min(found.next_budget, piece.peak));
    return found.answer != Answer::Unknown;
  };
  for (const int32_t width : {kNarrow, kWide}) {
    if (piece.peak <= bound) return bound;
    Effort share = effort.share(effort.left() / 4);
    offer(piece, beam_order(problem, width, bound, share));
    effort.add(share);
  }
  // The beam is mostly right: try to prove that first.
  while (piece.peak > bound && ask(piece.peak - 1, effort.left() / 2)) {
  }
  // It was too much. Raise the bound from below with what is left.
  int64_t above = piece.peak - 1;
  while (bound < above && !effort.is_over()) {
    const int64_t middle = bound + (above - bound) / 2;
    if (!ask(middle, effort.left() / 4)) above = middle;
    above = std::min(above, piece.peak);
  }
  return bound;
}

}  // namespace

ExactOrder solve_exact(const OrderProblem& problem, std::span<const int32_t> hint, Effort& effort) {
  ExactOrder result;
  if (problem.n_ops == 0) return result;
  result.order = topological_order(problem);
  if (!hint.empty()) result.order.assign(hint.begin(), hint.end());
  int64_t bound = peak_bound(problem);
  std::vector<Piece> pieces = split(problem, result.order);
  // The piece with the highest peak decides; pieces below the bound need no search.
  std::vector<size_t> by_peak(pieces.size());
  for (size_t i = 0; i < by_peak.size(); ++i) by_peak[i] = i;
  std::stable_sort(by_peak.begin(), by_peak.end(), [&](size_t a, size_t b) { return pieces[a].peak > pieces[b].peak; });
  for (const size_t i : by_peak) {
    bound = std::max(bound, close_gap(pieces[i], bound, effort));
  }
  std::vector<int32_t> order;
  for (const Piece& piece : pieces) {
    for (const int32_t v : piece.order) order.push_back(piece.part.ops[v]);
  }
  const int64_t peak = peak_in(problem, order);
  if (hint.empty() || peak < peak_in(problem, hint)) result.order = std::move(order);
  result.peak_bytes = peak_in(problem, result.order);
  result.lower_bound = std::min(bound, result.peak_bytes);
  return result;
}

}  // namespace regal
