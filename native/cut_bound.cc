#include "cut_bound.h"

#include "bounds.h"

namespace regal {
namespace {

constexpr int32_t kSource = 0, kSink = 1;

}  // namespace

// Gives `node` to `op` and to all ops that `rows` leads to from there.
void CutBound::mark(int32_t op, const Csr& rows, int32_t node) {
  queue_.assign(1, op);
  for (size_t i = 0; i < queue_.size(); ++i) {
    for (const int32_t v : rows[queue_[i]]) {
      if (node_[v] == node) continue;
      node_[v] = node;
      queue_.push_back(v);
    }
  }
}

int64_t CutBound::during(int32_t op) {
  const OrderProblem& problem = *problem_;
  // Its ancestors ran; neither it nor its descendants did. Only the other ops have a choice.
  node_.assign(problem.n_ops, -1);
  mark(op, problem.predecessors, kSource);
  mark(op, problem.successors, kSink);
  node_[op] = kSink;
  int32_t nodes = 2;
  for (int32_t& node : node_) {
    if (node < 0) node = nodes++;
  }
  flow_.clear(nodes + 2 * problem.n_storages);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    if (node_[v] < 2) continue;
    for (const int32_t u : problem.predecessors[v]) {
      if (node_[u] >= 2) flow_.add_arc(node_[v], node_[u], Flow::kUncuttable);
    }
  }
  int64_t surely_live = 0;
  for (int32_t s = 0; s < problem.n_storages; ++s) {
    bool is_begun = problem.is_input[s], is_needed = problem.is_output[s], has_choice = false;
    for (const int32_t v : problem.touchers[s]) {
      is_begun = is_begun || node_[v] == kSource || v == op;
      is_needed = is_needed || node_[v] == kSink;
      has_choice = has_choice || node_[v] >= 2;
    }
    if (is_begun && is_needed) surely_live += problem.bytes[s];
    if ((is_begun && is_needed) || !has_choice) continue;
    const int32_t begun = is_begun ? kSource : nodes++;
    const int32_t over = is_needed ? kSink : nodes++;
    flow_.add_arc(begun, over, problem.bytes[s]);
    for (const int32_t v : problem.touchers[s]) {
      if (node_[v] < 2) continue;
      if (!is_begun) flow_.add_arc(node_[v], begun, Flow::kUncuttable);
      if (!is_needed) flow_.add_arc(over, node_[v], Flow::kUncuttable);
    }
  }
  return surely_live + flow_.run() + problem.workspace[op] - most_saved_in_place(problem, op);
}

}  // namespace regal
