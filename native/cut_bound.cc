#include "cut_bound.h"

#include "bounds.h"

namespace regal {

int64_t CutBound::during(int32_t op) {
  const OrderProblem& problem = *problem_;
  constexpr int32_t kSource = 0, kSink = 1;
  const auto node = [](int32_t v) { return v + 2; };
  const auto begun = [&](int32_t s) { return problem.n_ops + 2 + 2 * s; };
  const auto over = [&](int32_t s) { return problem.n_ops + 3 + 2 * s; };
  flow_.clear(problem.n_ops + 2 + 2 * problem.n_storages);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    for (const int32_t u : problem.predecessors[v]) flow_.add_arc(node(v), node(u), Flow::kUncuttable);
  }
  for (int32_t s = 0; s < problem.n_storages; ++s) {
    if (problem.touchers[s].empty() && !(problem.is_input[s] && problem.is_output[s])) continue;
    flow_.add_arc(begun(s), over(s), problem.bytes[s]);
    if (problem.is_input[s]) flow_.add_arc(kSource, begun(s), Flow::kUncuttable);
    if (problem.is_output[s]) flow_.add_arc(over(s), kSink, Flow::kUncuttable);
    for (const int32_t v : problem.touchers[s]) {
      flow_.add_arc(node(v), begun(s), Flow::kUncuttable);
      flow_.add_arc(over(s), node(v), Flow::kUncuttable);
    }
  }
  // The op has not ended, but has begun all that it touches. Its ancestors ran before it; its
  // descendants cannot have run because it has not.
  flow_.add_arc(node(op), kSink, Flow::kUncuttable);
  for (const int32_t u : problem.predecessors[op]) flow_.add_arc(kSource, node(u), Flow::kUncuttable);
  for (const int32_t s : problem.touched[op]) flow_.add_arc(kSource, begun(s), Flow::kUncuttable);
  return flow_.run() + problem.workspace[op] - most_saved_in_place(problem, op);
}

}  // namespace regal
