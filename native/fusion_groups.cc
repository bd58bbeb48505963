#include "fusion_groups.h"

#include <algorithm>

namespace regal {

GroupMerger::GroupMerger(const FusionProblem& problem)
    : problem_(&problem),
      group_(problem.n_ops),
      members_(problem.n_ops),
      layout_(problem.n_ops),
      has_anchor_(problem.n_ops),
      is_apart_(problem.n_ops),
      place_(problem.n_ops),
      slot_(problem.n_ops),
      mark_(problem.n_ops, 0) {}

void GroupMerger::start(const Layouts& layouts) {
  for (int32_t v = 0; v < problem_->n_ops; ++v) {
    group_[v] = v;
    members_[v].assign(1, v);
    layout_[v] = problem_->is_free[v] ? int8_t{-1} : static_cast<int8_t>(layouts[v]);
    has_anchor_[v] = problem_->is_anchor[v];
    is_apart_[v] = problem_->is_apart[v];
    place_[problem_->order[v]] = v;
  }
  slot_ = problem_->order;
}

void GroupMerger::list(std::vector<int32_t>& groups) const {
  groups.clear();
  for (const int32_t group : slot_) {
    if (group >= 0) groups.push_back(group);
  }
}

bool GroupMerger::may_merge(int32_t producer, int32_t consumer) {
  const int32_t a = group_[producer], b = group_[consumer];
  if (a == b || (has_anchor_[a] && (has_anchor_[b] || is_apart_[b])) || (is_apart_[a] && has_anchor_[b])) {
    return false;
  }
  if (layout_[a] >= 0 && layout_[b] >= 0 && layout_[a] != layout_[b]) return false;
  if (static_cast<int64_t>(members_[a].size() + members_[b].size()) > problem_->most_ops) return false;
  // The consumer's group may lie before the producer's only if neither needs the other.
  if (place_[a] > place_[b]) return false;
  bool has_device = false;
  for (int32_t d = 0; d < problem_->n_devices && !has_device; ++d) {
    const auto runs = [&](int32_t op) { return problem_->alone[problem_->at(op, d)][0] != kForbidden; };
    has_device = std::all_of(members_[a].begin(), members_[a].end(), runs) &&
                 std::all_of(members_[b].begin(), members_[b].end(), runs);
  }
  if (!has_device) return false;
  for (const int32_t v : members_[a]) {
    const auto fusible = problem_->fusible[v];
    for (const int32_t w : problem_->consumers[v]) {
      if (group_[w] == b && !std::binary_search(fusible.begin(), fusible.end(), w)) return false;
    }
  }
  return !finds_detour(a, b);
}

// Whether a way from group `from` to group `to` leads through a third one. All groups between are
// marked, those that the way would have to pass.
bool GroupMerger::finds_detour(int32_t from, int32_t to) {
  ++stamp_;
  stack_.assign(1, from);
  while (!stack_.empty()) {
    const int32_t group = stack_.back();
    stack_.pop_back();
    for (const int32_t v : members_[group]) {
      for (const int32_t w : problem_->successors[v]) {
        const int32_t next = group_[w];
        if (next == group || mark_[next] == stamp_) continue;
        if (next == to) {
          if (group != from) return true;
          continue;
        }
        if (place_[next] > place_[to]) continue;
        mark_[next] = stamp_;
        stack_.push_back(next);
      }
    }
  }
  return false;
}

void GroupMerger::join(int32_t producer, int32_t consumer, std::vector<int32_t>& ops, uint8_t& layout) const {
  const int32_t a = group_[producer], b = group_[consumer];
  ops = members_[a];
  ops.insert(ops.end(), members_[b].begin(), members_[b].end());
  const int8_t either = layout_[a] >= 0 ? layout_[a] : layout_[b];
  layout = either < 0 ? uint8_t{0} : static_cast<uint8_t>(either);
}

// What depends on the first group moves behind the second one; the rest keeps its sequence.
void GroupMerger::merge(int32_t producer, int32_t consumer) {
  const int32_t a = group_[producer], b = group_[consumer];
  const int32_t begin = place_[a], end = place_[b];
  int32_t at = begin;
  moved_.clear();
  for (int32_t i = begin + 1; i < end; ++i) {
    const int32_t group = slot_[i];
    if (group < 0) continue;
    if (mark_[group] == stamp_) {
      moved_.push_back(group);
    } else {
      slot_[at] = group;
      place_[group] = at++;
    }
  }
  slot_[at] = a;
  place_[a] = at++;
  for (const int32_t group : moved_) {
    slot_[at] = group;
    place_[group] = at++;
  }
  std::fill(slot_.begin() + at, slot_.begin() + end + 1, -1);
  for (const int32_t v : members_[b]) group_[v] = a;
  members_[a].insert(members_[a].end(), members_[b].begin(), members_[b].end());
  members_[b].clear();
  if (layout_[a] < 0) layout_[a] = layout_[b];
  has_anchor_[a] = has_anchor_[a] || has_anchor_[b];
  is_apart_[a] = is_apart_[a] || is_apart_[b];
}

}  // namespace regal
