#include "device_list.h"

#include <algorithm>
#include <limits>

namespace regal {
namespace {

template <typename Entry>
void push(std::vector<Entry>& heap, Entry entry) {
  heap.push_back(entry);
  std::push_heap(heap.begin(), heap.end());
}

}  // namespace

ListScheduler::ListScheduler(const CompactDevices& problem)
    : problem_(&problem),
      n_devices_(problem.n_devices()),
      has_contention_(problem.source->has_contention),
      waiting_(problem.n_ops()),
      way_(problem.n_ops()),
      tail_(problem.n_ops()),
      start_(problem.n_ops()),
      end_(problem.n_ops()),
      ready_(problem.n_ops()),
      cause_(problem.n_ops()),
      left_(problem.n_ops()),
      startable_(problem.n_devices()),
      coming_(problem.n_devices()),
      free_from_(problem.n_devices()),
      last_(problem.n_devices()),
      link_free_(static_cast<size_t>(problem.n_devices()) * problem.n_devices()),
      sent_(problem.n_devices(), -1) {
  const DeviceProblem& p = *problem.source;
  std::vector<std::vector<int32_t>> later(p.n_ops);
  for (int32_t v = 0; v < p.n_ops; ++v) {
    for (const int32_t u : problem.controls(v)) later[u].push_back(v);
  }
  for (int32_t v = 0; v < p.n_ops; ++v) {
    edges_of_.push_back(static_cast<int32_t>(edges_.size()));
    // Readers of one tensor stay together: each device gets it once.
    for (const int32_t t : problem.writes(v)) {
      for (const int32_t w : p.readers[t]) edges_.push_back({w, t});
    }
    for (const int32_t w : later[v]) edges_.push_back({w, -1});
  }
  edges_of_.push_back(static_cast<int32_t>(edges_.size()));
  for (const Edge& edge : edges_) ++waiting_[edge.op];
  is_exact_ = !has_contention_ && std::ranges::all_of(problem.inputs, [&](int32_t t) {
    return p.readers[t].size() < 2;
  });
  order_.reserve(p.n_ops);
}

int64_t ListScheduler::run(std::span<const int32_t> placement, std::span<const int64_t> extra,
                           int64_t limit) {
  if (find_ways(placement, extra) > limit) return kTooLate;
  // Estimates may be too late themselves.
  const int64_t limit_of_starts = is_exact_ ? limit : kTooLate;
  release_sources(placement);
  order_.clear();
  int64_t time = 0;
  const auto n = static_cast<size_t>(problem_->n_ops());
  while (order_.size() < n) {
    // The next op to start anywhere. Nothing that is not released yet can start before it.
    int32_t device = -1;
    int64_t now = std::numeric_limits<int64_t>::max();
    for (int32_t d = 0; d < n_devices_; ++d) {
      int64_t at = free_from_[d];
      if (startable_[d].empty()) {
        if (coming_[d].empty()) continue;
        at = std::max(at, -coming_[d].front().key);
      }
      if (at >= now) continue;
      now = at;
      device = d;
    }
    auto& coming = coming_[device];
    auto& startable = startable_[device];
    while (!coming.empty() && -coming.front().key <= now) {
      const int32_t op = coming.front().op;
      std::pop_heap(coming.begin(), coming.end());
      coming.pop_back();
      push(startable, Entry{way_[op], op});
    }
    const int32_t op = startable.front().op;
    std::pop_heap(startable.begin(), startable.end());
    startable.pop_back();

    if (now > limit_of_starts - tail_[op]) return kTooLate;
    start_[op] = now;
    end_[op] = now + problem_->durations(op)[device];
    if (ready_[op] < now || cause_[op] < 0) cause_[op] = last_[device];
    free_from_[device] = end_[op];
    last_[device] = op;
    time = std::max(time, end_[op]);
    order_.push_back(op);
    finish(op, placement);
  }
  return time;
}

void ListScheduler::find_critical(std::vector<int32_t>& ops) const {
  ops.clear();
  const auto last = std::ranges::max_element(end_);
  if (last == end_.end()) return;
  for (auto op = static_cast<int32_t>(last - end_.begin()); op >= 0; op = cause_[op]) ops.push_back(op);
}

// Without contention, from the end of `source`'s op to the start of the other.
int64_t ListScheduler::lag(const Edge& edge, int32_t source, int32_t target) const {
  if (source == target) return 0;
  if (edge.tensor >= 0) return problem_->transfer(edge.tensor, source, target);
  return problem_->source->latency[static_cast<int64_t>(source) * n_devices_ + target];
}

// Returns the longest way without extras: no schedule of the placement is shorter.
int64_t ListScheduler::find_ways(std::span<const int32_t> placement, std::span<const int64_t> extra) {
  const auto& ops = problem_->topological;
  int64_t most = 0;
  for (auto it = ops.rbegin(); it != ops.rend(); ++it) {
    const int32_t here = placement[*it];
    int64_t longest_way = 0, longest_tail = 0;
    for (const Edge& edge : edges(*it)) {
      const int64_t between = lag(edge, here, placement[edge.op]);
      longest_way = std::max(longest_way, way_[edge.op] + between);
      longest_tail = std::max(longest_tail, tail_[edge.op] + between);
    }
    const int64_t length = problem_->durations(*it)[here];
    way_[*it] = longest_way + length + extra[*it];
    tail_[*it] = longest_tail + length;
    most = std::max(most, tail_[*it]);
  }
  return most;
}

void ListScheduler::release_sources(std::span<const int32_t> placement) {
  for (int32_t d = 0; d < n_devices_; ++d) {
    startable_[d].clear();
    coming_[d].clear();
  }
  std::ranges::fill(free_from_, 0);
  std::ranges::fill(last_, -1);
  std::ranges::fill(link_free_, 0);
  std::ranges::fill(ready_, 0);
  std::ranges::fill(cause_, -1);
  left_ = waiting_;
  // An input lies where its reader with the longest way runs; the others get it from there.
  for (const int32_t t : problem_->inputs) {
    const auto readers = problem_->source->readers[t];
    if (readers.size() < 2) continue;
    const auto first = std::ranges::max_element(readers, [&](int32_t a, int32_t b) {
      return way_[a] != way_[b] ? way_[a] < way_[b] : a > b;
    });
    for (const int32_t w : readers) {
      ready_[w] = std::max(ready_[w], lag({w, t}, placement[*first], placement[w]));
    }
  }
  for (const int32_t op : problem_->sources) push(coming_[placement[op]], Entry{-ready_[op], op});
}

void ListScheduler::finish(int32_t op, std::span<const int32_t> placement) {
  const int32_t here = placement[op];
  int32_t tensor = -1;
  for (const Edge& edge : edges(op)) {
    if (has_contention_ && edge.tensor != tensor) {
      tensor = edge.tensor;
      std::ranges::fill(sent_, -1);
    }
    const int32_t there = placement[edge.op];
    const int64_t at = arrival(edge, end_[op], here, there);
    if (at >= ready_[edge.op]) {
      ready_[edge.op] = at;
      cause_[edge.op] = op;
    }
    if (--left_[edge.op] == 0) push(coming_[there], Entry{-ready_[edge.op], edge.op});
  }
}

int64_t ListScheduler::arrival(const Edge& edge, int64_t end, int32_t source, int32_t target) {
  if (!has_contention_ || source == target || edge.tensor < 0) return end + lag(edge, source, target);
  if (sent_[target] < 0) {
    int64_t& link = link_free_[static_cast<int64_t>(source) * n_devices_ + target];
    link = std::max(link, end) + problem_->transfer(edge.tensor, source, target);
    sent_[target] = link;
  }
  return sent_[target];
}

}  // namespace regal
