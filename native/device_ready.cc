#include "device_ready.h"

#include <algorithm>

#include "random_keys.h"

namespace regal {

ReadyOps::ReadyOps(const CompactDevices& problem) : problem_(&problem) {}

void ReadyOps::start(std::span<const int64_t> ranks, const Keys& keys, const Timeline& timeline) {
  timeline_ = &timeline;
  ranks_ = ranks;
  keys_ = keys;
  waiting_ = problem_->waiting;
  heap_.clear();
  not_made_.clear();
  for (const int32_t v : problem_->sources) add(v);
}

void ReadyOps::add_ranked(int32_t op) {
  const int64_t key = static_cast<int64_t>(keys_.priority[op]) - int64_t{kNeutralKey};
  const int64_t rank = int64_t{kNeutralKey} + ranks_[op] + static_cast<int64_t>(keys_.bend * static_cast<double>(key));
  const auto bounded = static_cast<uint32_t>(std::clamp<int64_t>(rank, 0, UINT32_MAX));
  heap_.push_back(static_cast<uint64_t>(bounded) << 32 | ~static_cast<uint32_t>(op));
  std::push_heap(heap_.begin(), heap_.end());
}

void ReadyOps::add(int32_t op) {
  if (keys_.wait.empty() || keys_.wait[op] >= keys_.wait_below) {
    add_ranked(op);
    return;
  }
  int64_t made = 0;
  for (const int32_t u : problem_->source->predecessors[op]) made = std::max(made, timeline_->finish_of(u));
  not_made_.emplace_back(-made, -op);
  std::push_heap(not_made_.begin(), not_made_.end());
}

// The clock of those that wait is the device that is free first.
void ReadyOps::admit() {
  int64_t now = timeline_->free_from(0);
  for (int32_t d = 1; d < problem_->n_devices(); ++d) now = std::min(now, timeline_->free_from(d));
  while (!not_made_.empty() && (heap_.empty() || -not_made_.front().first <= now)) {
    now = std::max(now, -not_made_.front().first);
    add_ranked(-not_made_.front().second);
    std::pop_heap(not_made_.begin(), not_made_.end());
    not_made_.pop_back();
  }
}

int32_t ReadyOps::next() {
  if (!not_made_.empty()) admit();
  std::pop_heap(heap_.begin(), heap_.end());
  const auto op = static_cast<int32_t>(~static_cast<uint32_t>(heap_.back()));
  heap_.pop_back();
  return op;
}

void ReadyOps::finish(int32_t op) {
  for (const int32_t w : problem_->successors(op)) {
    if (--waiting_[w] == 0) add(w);
  }
}

}  // namespace regal
