#include "flow.h"

#include <algorithm>

namespace regal {

void Flow::clear(int32_t nodes) {
  arcs_.clear();
  first_.assign(nodes, -1);
}

void Flow::add_arc(int32_t from, int32_t to, int64_t capacity) {
  arcs_.push_back({to, first_[from], capacity});
  first_[from] = static_cast<int32_t>(arcs_.size()) - 1;
  arcs_.push_back({from, first_[to], 0});
  first_[to] = static_cast<int32_t>(arcs_.size()) - 1;
}

int64_t Flow::run() {
  int64_t total = 0;
  while (find_levels()) {
    current_ = first_;
    while (const int64_t pushed = push()) total += pushed;
  }
  return total;
}

bool Flow::find_levels() {
  level_.assign(first_.size(), -1);
  queue_.assign(1, 0);
  level_[0] = 0;
  for (size_t i = 0; i < queue_.size(); ++i) {
    for (int32_t a = first_[queue_[i]]; a >= 0; a = arcs_[a].next) {
      ++arcs_seen_;
      if (arcs_[a].capacity == 0 || level_[arcs_[a].to] >= 0) continue;
      level_[arcs_[a].to] = level_[queue_[i]] + 1;
      if (arcs_[a].to == 1) return true;
      queue_.push_back(arcs_[a].to);
    }
  }
  return false;
}

// Walks forward along the levels, back at dead ends; a path may be as long as the graph is deep, so
// there is no recursion.
int64_t Flow::push() {
  int32_t node = 0;
  path_.clear();
  while (node != 1) {
    int32_t& a = current_[node];
    while (a >= 0 && (arcs_[a].capacity == 0 || level_[arcs_[a].to] != level_[node] + 1)) {
      a = arcs_[a].next;
      ++arcs_seen_;
    }
    if (a >= 0) {
      path_.push_back(a);
      node = arcs_[a].to;
    } else {
      if (path_.empty()) return 0;
      level_[node] = -1;
      node = arcs_[path_.back() ^ 1].to;
      path_.pop_back();
    }
  }
  int64_t pushed = kUncuttable;
  arcs_seen_ += static_cast<int64_t>(path_.size());
  for (const int32_t a : path_) pushed = std::min(pushed, arcs_[a].capacity);
  for (const int32_t a : path_) {
    arcs_[a].capacity -= pushed;
    arcs_[a ^ 1].capacity += pushed;
  }
  return pushed;
}

}  // namespace regal
