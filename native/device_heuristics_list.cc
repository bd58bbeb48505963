#include "device_heuristics_list.h"

#include <algorithm>
#include <queue>
#include <tuple>

namespace regal {

int64_t BusyTimes::earliest(int64_t ready, int64_t length) const {
  auto gap = std::lower_bound(gaps_.begin(), gaps_.end(), ready + length,
                              [](const Gap& a, int64_t end) { return a.end < end; });
  for (; gap != gaps_.end(); ++gap) {
    const int64_t start = std::max(gap->start, ready);
    if (start + length <= gap->end) return start;
  }
  return std::max(end_, ready);
}

void BusyTimes::reserve(int64_t start, int64_t length) {
  const int64_t end = start + length;
  if (start >= end_) {
    if (start > end_) gaps_.push_back({end_, start});
    end_ = end;
    return;
  }
  const auto gap = std::lower_bound(gaps_.begin(), gaps_.end(), end,
                                    [](const Gap& a, int64_t value) { return a.end < value; });
  const Gap old = *gap;
  if (old.start == start && old.end == end) {
    gaps_.erase(gap);
  } else if (old.start == start) {
    gap->start = end;
  } else if (old.end == end) {
    gap->end = start;
  } else {
    gap->start = end;
    gaps_.insert(gap, {old.start, start});
  }
}

ListSchedule::ListSchedule(const DeviceTables& tables)
    : tables_(&tables), devices_(tables.n_devices()), ledger_(tables) {
  const DeviceProblem& problem = tables.problem;
  placement_.assign(problem.n_ops, -1);
  start_.assign(problem.n_ops, 0);
  end_.assign(problem.n_ops, 0);
  sequence_.reserve(problem.n_ops);
  home_.assign(problem.n_tensors, -1);
  there_.assign(problem.n_tensors * devices_, -1);
  busy_.resize(devices_);
  links_.resize(devices_ * devices_);
  sent_until_.assign(devices_, 0);
}

bool ListSchedule::may_place(int32_t op, int32_t device) const {
  const int32_t pinned = ledger_.device_of_group(tables_->problem.group[op]);
  return pinned >= 0 ? pinned == device : tables_->problem.may_run_on(op, device);
}

int64_t ListSchedule::arrival(int32_t op, int32_t device, bool books) {
  const DeviceProblem& problem = tables_->problem;
  int64_t latest = 0;
  missing_.clear();
  for (const int32_t u : problem.control[op]) {
    latest = std::max(latest, end_[u] + problem.latency[placement_[u] * devices_ + device]);
  }
  for (const int32_t t : problem.reads[op]) {
    int64_t& there = there_[t * devices_ + device];
    if (there >= 0) {
      latest = std::max(latest, there);
      continue;
    }
    const int32_t maker = problem.producer[t];
    const int32_t source = maker < 0 ? home_[t] : placement_[maker];
    const int64_t made = maker < 0 ? 0 : end_[maker];
    if (source < 0 || source == device) {
      latest = std::max(latest, made);
      if (books) there = made;
      if (books && source < 0) home_[t] = device;
    } else {
      missing_.push_back({made, t, source});
    }
  }
  std::sort(missing_.begin(), missing_.end(), [](const Missing& a, const Missing& b) {
    return a.ready != b.ready ? a.ready < b.ready : a.tensor < b.tensor;
  });
  for (const Missing& send : missing_) sent_until_[send.source] = 0;
  for (const Missing& send : missing_) {
    const int64_t length = problem.transfer_of(send.tensor, send.source, device);
    int64_t start = send.ready;
    if (problem.has_contention) {
      BusyTimes& link = links_[send.source * devices_ + device];
      start = link.earliest(std::max(send.ready, sent_until_[send.source]), length);
      if (books) link.reserve(start, length);
      sent_until_[send.source] = start + length;
    }
    if (books) there_[send.tensor * devices_ + device] = start + length;
    latest = std::max(latest, start + length);
  }
  return latest;
}

int64_t ListSchedule::ready_at(int32_t op, int32_t device) { return arrival(op, device, false); }

int64_t ListSchedule::start_at(int32_t op, int32_t device, int64_t ready, bool appends) const {
  const BusyTimes& busy = busy_[device];
  if (appends) return std::max(busy.end(), ready);
  return busy.earliest(ready, tables_->problem.duration_of(op, device));
}

void ListSchedule::place(int32_t op, int32_t device, bool appends) {
  const int64_t length = tables_->problem.duration_of(op, device);
  const int64_t start = start_at(op, device, arrival(op, device, true), appends);
  busy_[device].reserve(start, length);
  ledger_.place(op, device);
  placement_[op] = device;
  start_[op] = start;
  end_[op] = start + length;
  sequence_.push_back(op);
}

Placed ListSchedule::result() const {
  Placed placed{placement_, sequence_};
  std::stable_sort(placed.order.begin(), placed.order.end(),
                   [&](int32_t a, int32_t b) { return start_[a] < start_[b]; });
  return placed;
}

Placed insertion_schedule(const DeviceTables& tables, const InsertionRule& rule) {
  const DeviceProblem& problem = tables.problem;
  ListSchedule schedule(tables);
  const auto comes_later = [&](int32_t a, int32_t b) {
    return rule.priorities[a] != rule.priorities[b] ? rule.priorities[a] < rule.priorities[b] : a > b;
  };
  std::priority_queue<int32_t, std::vector<int32_t>, decltype(comes_later)> ready(comes_later);
  std::vector<int32_t> waiting(problem.n_ops);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    waiting[v] = static_cast<int32_t>(problem.predecessors[v].size());
    if (waiting[v] == 0) ready.push(v);
  }
  while (!ready.empty()) {
    const int32_t v = ready.top();
    ready.pop();
    const int32_t wished = rule.wished.empty() ? -1 : rule.wished[v];
    int32_t best = -1;
    int64_t best_overflow = 0, best_end = 0;
    for (int32_t d = 0; d < problem.n_devices; ++d) {
      if (!schedule.may_place(v, d)) continue;
      const int64_t overflow = schedule.overflow_of(v, d);
      if (d == wished && overflow == 0) {
        best = d;
        break;
      }
      if (best >= 0 && overflow > best_overflow) continue;
      int64_t end = schedule.start_at(v, d, schedule.ready_at(v, d), false) + problem.duration_of(v, d);
      if (!rule.beyond.empty()) end += rule.beyond[static_cast<int64_t>(v) * problem.n_devices + d];
      if (best < 0 || overflow < best_overflow || end < best_end) {
        best = d;
        best_overflow = overflow;
        best_end = end;
      }
    }
    schedule.place(v, best, false);
    for (const int32_t w : problem.successors[v]) {
      if (--waiting[w] == 0) ready.push(w);
    }
  }
  return schedule.result();
}

}  // namespace regal
