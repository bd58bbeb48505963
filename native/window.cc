#include "window.h"

#include <algorithm>

#include "exact_order.h"
#include "reduce.h"
#include "simulate.h"

namespace regal {
namespace {

// Solves steps [first, last) of `order`; true if their peak went down.
bool improve_stretch(const OrderProblem& problem, std::vector<int32_t>& order, int64_t first, int64_t last,
                     int64_t old_peak, Effort& effort) {
  std::vector<When> when(problem.n_ops, When::After);
  for (int64_t step = 0; step < last; ++step) when[order[step]] = step < first ? When::Before : When::Inside;
  const Part part = part_of(problem, when);
  std::vector<int32_t> part_op(problem.n_ops, -1), hint;
  for (size_t i = 0; i < part.ops.size(); ++i) part_op[part.ops[i]] = static_cast<int32_t>(i);
  for (int64_t step = first; step < last; ++step) hint.push_back(part_op[order[step]]);
  const ExactOrder found = solve_exact(part.problem, hint, effort);
  if (found.peak_bytes >= old_peak) return false;
  for (int64_t step = first; step < last; ++step) order[step] = part.ops[found.order[step - first]];
  return true;
}

}  // namespace

std::vector<int32_t> improve_windows(const OrderProblem& problem, std::span<const int32_t> order, int32_t width,
                                     int64_t floor, int64_t most_per_window, Effort& effort) {
  std::vector<int32_t> best(order.begin(), order.end());
  bool is_better = true;
  while (is_better && !effort.is_over()) {
    const Simulation run = simulate(problem, best);
    if (run.peak_bytes <= floor) break;
    is_better = false;
    // The peak in the middle; then near the end, near the start.
    for (const int64_t before : {width / 2, 7 * width / 8, width / 8}) {
      const int64_t first = std::max<int64_t>(0, run.peak_step - before);
      const int64_t last = std::min<int64_t>(problem.n_ops, first + width);
      Effort share = effort.share(most_per_window);
      is_better = improve_stretch(problem, best, first, last, run.peak_bytes, share);
      effort.add(share);
      if (is_better) break;
    }
  }
  return best;
}

}  // namespace regal
