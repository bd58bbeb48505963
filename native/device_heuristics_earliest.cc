#include <algorithm>
#include <queue>
#include <vector>

#include "device_heuristics_list.h"

namespace regal {
namespace {

// A link that fills moves the arrivals of all that wait for it; so many are looked at per step.
constexpr int32_t kMostMoves = 16;

// Per device, the ready ops that may go there: those whose inputs are there when the device gets
// idle, best first, and the others, first arrival first. Arrivals only get later as links fill, so
// an entry is checked again when it comes up.
class EarliestFirst {
 public:
  EarliestFirst(const DeviceTables& tables, const EarliestRule& rule)
      : tables_(tables), rule_(rule), schedule_(tables), queues_(tables.n_devices()),
        is_ready_(tables.n_ops(), 0), is_done_(tables.n_ops(), 0), open_(tables.n_ops(), 0),
        last_(tables.n_devices(), -1) {}

  Placed run();

 private:
  struct Entry {
    int64_t ready;
    int64_t priority;
    int32_t op;
  };
  struct LaterArrival {
    bool operator()(const Entry& a, const Entry& b) const {
      if (a.ready != b.ready) return a.ready > b.ready;
      return a.priority != b.priority ? a.priority < b.priority : a.op > b.op;
    }
  };
  struct LowerPriority {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.priority != b.priority ? a.priority < b.priority : a.op > b.op;
    }
  };
  struct Queues {
    std::priority_queue<Entry, std::vector<Entry>, LowerPriority> arrived;
    std::priority_queue<Entry, std::vector<Entry>, LaterArrival> coming;
  };
  struct Choice {
    int32_t op = -1;
    int32_t device = -1;
    int64_t start = 0;
  };

  bool may_place(int32_t op, int32_t device) const {
    if (!rule_.placement.empty()) return rule_.placement[op] == device;
    return schedule_.may_place(op, device);
  }
  bool is_full(int32_t op, int32_t device) const {
    return rule_.placement.empty() && schedule_.overflow_of(op, device) > 0;
  }
  bool is_better(const Choice& a, const Choice& b) const {
    if (b.op < 0) return true;
    if (a.start != b.start) return a.start < b.start;
    const int64_t first = rule_.priorities[a.op], second = rule_.priorities[b.op];
    if (first != second) return first > second;
    return a.op < b.op;
  }
  void make_ready(int32_t op);
  void close(int32_t op);
  Choice best_on(int32_t device);
  Choice next_on(int32_t device);
  bool waits_for(int32_t favorite, int32_t device);
  Choice least_overflow();
  void place(const Choice& choice);

  const DeviceTables& tables_;
  const EarliestRule& rule_;
  ListSchedule schedule_;
  std::vector<Queues> queues_;
  std::vector<uint8_t> is_ready_, is_done_;
  std::vector<int32_t> open_;     // per ready op: devices that are not full for it
  std::vector<int32_t> last_;     // per device: its last op
  std::priority_queue<Entry, std::vector<Entry>, LowerPriority> crowded_;  // all devices are full
};

void EarliestFirst::make_ready(int32_t op) {
  is_ready_[op] = 1;
  for (int32_t d = 0; d < tables_.n_devices(); ++d) {
    if (!may_place(op, d)) continue;
    queues_[d].coming.push({schedule_.ready_at(op, d), rule_.priorities[op], op});
    ++open_[op];
  }
}

// One device less for this op, for good: it is full, even if other ops free memory later, or the
// op's group went elsewhere.
void EarliestFirst::close(int32_t op) {
  if (--open_[op] == 0) crowded_.push({0, rule_.priorities[op], op});
}

EarliestFirst::Choice EarliestFirst::best_on(int32_t device) {
  auto& [arrived, coming] = queues_[device];
  const int64_t idle = schedule_.device_end(device);
  Choice moved;  // the best of those whose arrival got later
  for (int32_t moves = 0; moves < kMostMoves;) {
    while (!coming.empty() && coming.top().ready <= idle) {
      arrived.push(coming.top());
      coming.pop();
    }
    const bool has_arrived = !arrived.empty();
    if (!has_arrived && coming.empty()) break;
    Entry entry = has_arrived ? arrived.top() : coming.top();
    const bool is_done = is_done_[entry.op] != 0;
    const int64_t ready = is_done ? 0 : schedule_.ready_at(entry.op, device);
    const bool is_closed = !is_done && (!may_place(entry.op, device) || is_full(entry.op, device));
    if (!is_done && !is_closed && ready <= std::max(entry.ready, idle)) {
      return {entry.op, device, std::max(idle, ready)};
    }
    if (has_arrived) {
      arrived.pop();
    } else {
      coming.pop();
    }
    if (is_closed) close(entry.op);
    if (is_done || is_closed) continue;
    ++moves;
    entry.ready = ready;
    coming.push(entry);
    const Choice choice{entry.op, device, std::max(idle, ready)};
    if (is_better(choice, moved)) moved = choice;
  }
  return moved;
}

// SCT: whether the device keeps free for the favorite child of its last op: that child is ready,
// and no device could start it earlier.
bool EarliestFirst::waits_for(int32_t favorite, int32_t device) {
  if (favorite < 0 || is_done_[favorite] || !is_ready_[favorite] || !may_place(favorite, device)) {
    return false;
  }
  if (is_full(favorite, device)) return false;
  const int64_t own = schedule_.start_at(favorite, device, schedule_.ready_at(favorite, device), true);
  for (int32_t d = 0; d < tables_.n_devices(); ++d) {
    if (d == device || !may_place(favorite, d)) continue;
    if (schedule_.start_at(favorite, d, schedule_.ready_at(favorite, d), true) < own) return false;
  }
  return true;
}

EarliestFirst::Choice EarliestFirst::next_on(int32_t device) {
  const Choice best = best_on(device);
  const int32_t last = last_[device];
  if (rule_.favorites.empty() || last < 0 || best.op < 0) return best;
  const int32_t favorite = rule_.favorites[last];
  if (!waits_for(favorite, device)) return best;
  const int64_t ready = schedule_.ready_at(favorite, device);
  const Choice awaited{favorite, device, std::max(ready, schedule_.device_end(device))};
  // Only an urgent op comes before: one that could start now on any device.
  if (best.op == favorite || best.start >= awaited.start) return awaited;
  for (int32_t d = 0; d < tables_.n_devices(); ++d) {
    if (may_place(best.op, d) && schedule_.ready_at(best.op, d) > best.start) return awaited;
  }
  return best;
}

void EarliestFirst::place(const Choice& choice) {
  schedule_.place(choice.op, choice.device, true);
  is_done_[choice.op] = 1;
  last_[choice.device] = choice.op;
}

// Every device is full for every ready op.
EarliestFirst::Choice EarliestFirst::least_overflow() {
  while (is_done_[crowded_.top().op]) crowded_.pop();
  Choice choice{crowded_.top().op, -1, 0};
  int64_t least = 0;
  for (int32_t d = 0; d < tables_.n_devices(); ++d) {
    if (!may_place(choice.op, d)) continue;
    const int64_t overflow = schedule_.overflow_of(choice.op, d);
    const int64_t ready = schedule_.ready_at(choice.op, d);
    const int64_t start = std::max(ready, schedule_.device_end(d));
    const bool is_less = overflow != least ? overflow < least : start < choice.start;
    if (choice.device >= 0 && !is_less) continue;
    choice.device = d;
    choice.start = start;
    least = overflow;
  }
  return choice;
}

Placed EarliestFirst::run() {
  const DeviceProblem& problem = tables_.problem;
  std::vector<int32_t> waiting(problem.n_ops);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    waiting[v] = static_cast<int32_t>(problem.predecessors[v].size());
    if (waiting[v] == 0) make_ready(v);
  }
  for (int32_t placed = 0; placed < problem.n_ops; ++placed) {
    Choice next;
    for (int32_t d = 0; d < problem.n_devices; ++d) {
      const Choice choice = next_on(d);
      if (choice.op >= 0 && is_better(choice, next)) next = choice;
    }
    if (next.op < 0) next = least_overflow();
    place(next);
    for (const int32_t w : problem.successors[next.op]) {
      if (--waiting[w] == 0) make_ready(w);
    }
  }
  return schedule_.result();
}

}  // namespace

std::vector<int32_t> greedy_favorites(const DeviceTables& tables, Favorites kind) {
  const DeviceProblem& problem = tables.problem;
  struct Edge {
    int64_t weight;
    int32_t writer;
    int32_t reader;
  };
  const std::vector<int64_t> below = upward_ranks(tables), above = downward_ranks(tables);
  std::vector<Edge> edges;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    for (const int32_t t : problem.reads[v]) {
      const int32_t u = problem.producer[t];
      if (u < 0) continue;
      int64_t weight = tables.mean_transfer[t];
      if (kind == Favorites::Critical) weight += above[u] + tables.mean_duration[u] + below[v];
      edges.push_back({weight, u, v});
    }
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    if (a.weight != b.weight) return a.weight > b.weight;
    return a.writer != b.writer ? a.writer < b.writer : a.reader < b.reader;
  });
  std::vector<int32_t> favorites(problem.n_ops, -1);
  std::vector<uint8_t> is_taken(problem.n_ops, 0);
  for (const Edge& edge : edges) {
    if (favorites[edge.writer] >= 0 || is_taken[edge.reader]) continue;
    favorites[edge.writer] = edge.reader;
    is_taken[edge.reader] = 1;
  }
  return favorites;
}

Placed earliest_schedule(const DeviceTables& tables, const EarliestRule& rule) {
  return EarliestFirst(tables, rule).run();
}

}  // namespace regal
