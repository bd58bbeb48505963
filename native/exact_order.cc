#include "exact_order.h"

#include <algorithm>
#include <utility>

#include "beam.h"
#include "bounds.h"
#include "cut_bound.h"
#include "order_within.h"
#include "reduce.h"
#include "simulate.h"
#include "twins.h"

namespace regal {
namespace {

// A stretch of the order that is solved by itself, forwards or backwards, whichever is easier:
// that depends on the graph and is not known beforehand.
struct Piece {
  Part part;
  OrderProblem backward;
  std::vector<int32_t> order;  // the best known one, in the part's own ids
  int64_t peak = 0;
};

void offer(Piece& piece, std::vector<int32_t> order) {
  if (order.empty()) return;
  LiveMemory memory(piece.part.problem);
  const int64_t peak = peak_of(order, memory);
  if (piece.order.empty() || peak < piece.peak) {
    piece.order = std::move(order);
    piece.peak = peak;
  }
}

// Raises `bound` by the minimum cuts of the ops whose step is above it in the best known order.
int64_t cut_bound(const Piece& piece, int64_t bound, Effort& effort) {
  const OrderProblem& problem = piece.part.problem;
  const std::vector<int64_t> bytes = simulate(problem, piece.order).bytes_at_step;
  std::vector<std::pair<int64_t, int32_t>> steps;
  for (size_t i = 0; i < bytes.size(); ++i) steps.emplace_back(-bytes[i], piece.order[i]);
  std::sort(steps.begin(), steps.end());
  CutBound cut(problem);
  int64_t seen = 0;
  for (const auto& [negated, op] : steps) {
    // Measured: an arc of a flow costs about a thirtieth of a downset in order_within.
    const int64_t units = 1 + (cut.arcs_seen() - seen + problem.n_ops + problem.n_storages) / 30;
    if (-negated <= bound || !effort.spend(units)) break;
    seen = cut.arcs_seen();
    bound = std::max(bound, cut.during(op));
  }
  return bound;
}

// Asks both directions in turn, with growing effort, whether the piece has an order within `budget`.
Answer ask(Piece& piece, int64_t budget, int64_t& bound, int64_t most, Effort& effort) {
  for (int64_t states = 1000; states <= most && !effort.is_over(); states *= 8) {
    for (const bool is_backward : {false, true}) {
      Effort share = effort.share(states);
      OrderWithin found = is_backward ? order_within(piece.backward, piece.part.problem, budget, share)
                                      : order_within(piece.part.problem, piece.backward, budget, share);
      effort.add(share);
      if (is_backward) std::reverse(found.order.begin(), found.order.end());
      offer(piece, std::move(found.order));
      if (found.answer == Answer::No) bound = std::max(bound, std::min(found.next_budget, piece.peak));
      if (found.answer != Answer::Unknown) return found.answer;
    }
  }
  return Answer::Unknown;
}

// Lowers the peak of a piece in growing steps until `bound` is reached or an answer takes too long.
void descend(Piece& piece, int64_t& bound, int64_t most, Effort& effort) {
  for (int64_t step = 1; piece.peak > bound;) {
    const int64_t budget = std::max(bound, piece.peak - step);
    const Answer answer = ask(piece, budget, bound, most, effort);
    if (answer == Answer::Unknown && step == 1) return;
    step = answer == Answer::Yes ? 8 * step : 1;
  }
}

// Narrows [bound, peak] of a piece until they meet or the effort is gone. Returns the proven bound:
// no order of the piece has a peak below it.
int64_t close_gap(Piece& piece, int64_t bound, Effort& effort) {
  const OrderProblem& problem = piece.part.problem;
  offer(piece, beam_both_ways(problem, piece.backward, 8, bound, effort));
  if (piece.peak > bound) {
    Effort share = effort.share(effort.left() / 8);
    bound = cut_bound(piece, bound, share);
    effort.add(share);
  }
  descend(piece, bound, 64000, effort);
  if (piece.peak > bound) {
    const int64_t width = std::clamp<int64_t>(effort.left() / 8 / problem.n_ops, 8, 200);
    offer(piece, beam_both_ways(problem, piece.backward, static_cast<int32_t>(width), bound, effort));
    descend(piece, bound, effort.left() / 4, effort);
  }
  // It was too much. Raise the bound from below with what is left.
  int64_t above = piece.peak;
  while (bound < above && !effort.is_over()) {
    const int64_t middle = bound + (above - bound) / 2;
    if (ask(piece, middle, bound, effort.left() / 8, effort) == Answer::Unknown) above = middle;
    above = std::min(above, piece.peak);
  }
  return bound;
}

// The pieces whose steps exceed `bound` in `order`; all others need no search. A step that has no
// choice (a segment of one op) costs the same in every order: it raises `bound`.
std::vector<Piece> pieces_above(const OrderProblem& problem, std::span<const int32_t> order, int64_t& bound) {
  const std::vector<int32_t> segments = segments_of(problem);
  const auto count = static_cast<size_t>(1 + *std::max_element(segments.begin(), segments.end()));
  std::vector<std::vector<int32_t>> in_order(count);
  for (const int32_t v : order) in_order[segments[v]].push_back(v);
  std::vector<int32_t> whole;
  for (const auto& ops : in_order) whole.insert(whole.end(), ops.begin(), ops.end());
  const std::vector<int64_t> bytes = simulate(problem, whole).bytes_at_step;

  std::vector<Piece> pieces;
  std::vector<When> when(problem.n_ops);
  std::vector<int32_t> part_op(problem.n_ops);
  int64_t step = 0;
  for (size_t k = 0; k < count; ++k) {
    const auto first = bytes.begin() + step;
    step += static_cast<int64_t>(in_order[k].size());
    const int64_t peak = in_order[k].empty() ? 0 : *std::max_element(first, bytes.begin() + step);
    if (in_order[k].size() == 1) bound = std::max(bound, peak);
    if (in_order[k].size() < 2 || peak <= bound) continue;
    const auto segment = static_cast<int32_t>(k);
    for (int32_t v = 0; v < problem.n_ops; ++v) {
      when[v] = segments[v] < segment ? When::Before : segments[v] > segment ? When::After : When::Inside;
    }
    Piece piece;
    piece.part = part_of(problem, when);
    piece.backward = reversed(piece.part.problem);
    for (size_t i = 0; i < piece.part.ops.size(); ++i) part_op[piece.part.ops[i]] = static_cast<int32_t>(i);
    std::vector<int32_t> start;
    for (const int32_t v : in_order[k]) start.push_back(part_op[v]);
    offer(piece, std::move(start));
    pieces.push_back(std::move(piece));
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.peak > b.peak; });
  return pieces;
}

}  // namespace

ExactOrder solve_exact(const OrderProblem& original, std::span<const int32_t> hint, Effort& effort) {
  ExactOrder result;
  if (original.n_ops == 0) return result;
  const std::vector<TwinGroup> twins = find_twins(original);
  const OrderProblem problem = with_twins_ordered(original, twins);
  result.order = topological_order(problem);
  if (!hint.empty()) {
    result.order.assign(hint.begin(), hint.end());
    sort_twins(twins, result.order);
  }
  result.lower_bound = peak_bound(problem);
  std::vector<Piece> pieces = pieces_above(problem, result.order, result.lower_bound);
  for (Piece& piece : pieces) {
    if (piece.peak > result.lower_bound) {
      result.lower_bound = std::max(result.lower_bound, close_gap(piece, result.lower_bound, effort));
    }
  }
  // Segments one after the other; inside a piece its own order, elsewhere the old one.
  const std::vector<int32_t> segments = segments_of(problem);
  std::stable_sort(result.order.begin(), result.order.end(),
                   [&](int32_t a, int32_t b) { return segments[a] < segments[b]; });
  for (const Piece& piece : pieces) {
    const int32_t segment = segments[piece.part.ops[0]];
    auto at = std::find_if(result.order.begin(), result.order.end(), [&](int32_t v) { return segments[v] == segment; });
    for (const int32_t v : piece.order) *at++ = piece.part.ops[v];
  }
  LiveMemory memory(original);
  result.peak_bytes = peak_of(result.order, memory);
  // Equal peaks: keep what the caller had.
  if (!hint.empty() && peak_of(hint, memory) <= result.peak_bytes) {
    result.order.assign(hint.begin(), hint.end());
    result.peak_bytes = peak_of(hint, memory);
  }
  result.lower_bound = std::min(result.lower_bound, result.peak_bytes);
  return result;
}

}  // namespace regal
