#include "cut_bound.h"

#include <algorithm>
#include <limits>

#include "bounds.h"

namespace regal {
namespace {

constexpr int64_t kUncuttable = std::numeric_limits<int64_t>::max() / 4;

}  // namespace

CutBound::CutBound(const OrderProblem& problem)
    : problem_(&problem),
      source_(problem.n_ops + 2 * problem.n_storages),
      sink_(source_ + 1),
      out_(sink_ + 1),
      level_(sink_ + 1),
      next_(sink_ + 1) {
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    for (const int32_t u : problem.predecessors[v]) add_arc(v, u, kUncuttable);
  }
  for (int32_t s = 0; s < problem.n_storages; ++s) {
    if (problem.touchers[s].empty() && !(problem.is_input[s] && problem.is_output[s])) continue;
    add_arc(begun(s), over(s), problem.bytes[s]);
    if (problem.is_input[s]) add_arc(source_, begun(s), kUncuttable);
    if (problem.is_output[s]) add_arc(over(s), sink_, kUncuttable);
    for (const int32_t v : problem.touchers[s]) {
      add_arc(v, begun(s), kUncuttable);
      add_arc(over(s), v, kUncuttable);
    }
  }
  for (const Arc& arc : arcs_) fresh_.push_back(arc.capacity);
}

void CutBound::add_arc(int32_t from, int32_t to, int64_t capacity) {
  out_[from].push_back(static_cast<int32_t>(arcs_.size()));
  arcs_.push_back({to, capacity});
  out_[to].push_back(static_cast<int32_t>(arcs_.size()));
  arcs_.push_back({from, 0});
}

void CutBound::tie(int32_t from, int32_t to) {
  add_arc(from, to, kUncuttable);
  tied_.insert(tied_.end(), {from, to});
}

int64_t CutBound::during(int32_t op) {
  for (const int32_t node : tied_) out_[node].pop_back();
  tied_.clear();
  arcs_.resize(fresh_.size());
  for (size_t i = 0; i < arcs_.size(); ++i) arcs_[i].capacity = fresh_[i];
  // The op itself has not ended; its ancestors have run because it is tied to them by precedence
  // arcs only if it ran, so they are tied to the source one by one; descendants follow from the arcs.
  tie(op, sink_);
  for (const int32_t u : problem_->predecessors[op]) tie(source_, u);
  for (const int32_t s : problem_->touched[op]) tie(source_, begun(s));
  int64_t flow = 0;
  while (find_levels()) {
    std::fill(next_.begin(), next_.end(), 0);
    while (const int64_t pushed = push(source_, kUncuttable)) flow += pushed;
  }
  return flow + problem_->workspace[op] - most_saved_in_place(*problem_, op);
}

bool CutBound::find_levels() {
  std::fill(level_.begin(), level_.end(), -1);
  std::vector<int32_t> queue{source_};
  level_[source_] = 0;
  for (size_t i = 0; i < queue.size() && level_[sink_] < 0; ++i) {
    for (const int32_t a : out_[queue[i]]) {
      if (arcs_[a].capacity == 0 || level_[arcs_[a].to] >= 0) continue;
      level_[arcs_[a].to] = level_[queue[i]] + 1;
      queue.push_back(arcs_[a].to);
    }
  }
  return level_[sink_] >= 0;
}

int64_t CutBound::push(int32_t node, int64_t most) {
  if (node == sink_) return most;
  for (size_t& i = next_[node]; i < out_[node].size(); ++i) {
    Arc& arc = arcs_[out_[node][i]];
    if (arc.capacity == 0 || level_[arc.to] != level_[node] + 1) continue;
    if (const int64_t pushed = push(arc.to, std::min(most, arc.capacity)); pushed > 0) {
      arc.capacity -= pushed;
      arcs_[out_[node][i] ^ 1].capacity += pushed;
      return pushed;
    }
  }
  return 0;
}

}  // namespace regal
