#include "valley.h"

#include <algorithm>

namespace regal {

// As in CutBound, the ops of T are the source side, and a storage is an arc begun -> over. What A began
// is begun whatever T is (source); what is needed after D is never over (sink). T = D is a cut; it is
// the smallest one if the flow fills it.
bool ValleyTest::is_valley(const Downset& done, int32_t size_below) {
  const OrderProblem& problem = *problem_;
  const auto between = done.order().subspan(size_below);
  storages_.clear();
  int32_t nodes = 2;
  for (const int32_t v : between) {
    node_of_op_[v] = nodes++;
    const auto row = problem.touched[v];
    storages_.insert(storages_.end(), row.begin(), row.end());
  }
  std::sort(storages_.begin(), storages_.end());
  storages_.erase(std::unique(storages_.begin(), storages_.end()), storages_.end());
  flow_.clear(nodes + 2 * static_cast<int32_t>(storages_.size()));
  for (const int32_t v : between) {
    for (const int32_t u : problem.predecessors[v]) {
      if (node_of_op_[u] >= 0) flow_.add_arc(node_of_op_[v], node_of_op_[u], Flow::kUncuttable);
    }
  }
  int64_t live_at_end = 0;
  for (const int32_t s : storages_) {
    bool is_begun = problem.is_input[s], is_needed = problem.is_output[s];
    for (const int32_t v : problem.touchers[s]) {
      is_needed = is_needed || !done.has(v);
      is_begun = is_begun || (done.has(v) && node_of_op_[v] < 0);
    }
    if (is_begun && is_needed) continue;  // live in every T
    if (is_needed) live_at_end += problem.bytes[s];
    const int32_t begun = is_begun ? 0 : nodes++;
    const int32_t over = is_needed ? 1 : nodes++;
    flow_.add_arc(begun, over, problem.bytes[s]);
    for (const int32_t v : problem.touchers[s]) {
      if (node_of_op_[v] < 0) continue;
      if (!is_begun) flow_.add_arc(node_of_op_[v], begun, Flow::kUncuttable);
      if (!is_needed) flow_.add_arc(over, node_of_op_[v], Flow::kUncuttable);
    }
  }
  for (const int32_t v : between) node_of_op_[v] = -1;
  return flow_.run() == live_at_end;
}

}  // namespace regal
