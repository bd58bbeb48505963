#include "moves.h"

#include <algorithm>
#include <bit>

namespace regal {
namespace {

// So many low bits are dropped from the bytes of each step that their sum stays below 2^62.
int32_t shift_of_area(const OrderProblem& problem) {
  uint64_t most = 0;  // bytes of any step
  for (const int64_t bytes : problem.bytes) most += static_cast<uint64_t>(bytes);
  for (const int64_t bytes : problem.workspace) most += static_cast<uint64_t>(bytes);
  const int bits = std::bit_width(most) + std::bit_width(static_cast<uint32_t>(problem.n_ops));
  return std::max(0, bits - 62);
}

}  // namespace

MovableOrder::MovableOrder(const CompactProblem& problem)
    : problem_(&problem),
      step_of_(problem.n_ops()),
      live_before_(problem.n_ops() + 1),
      leaves_(std::bit_ceil(static_cast<size_t>(std::max(problem.n_ops(), 1)))),
      area_shift_(shift_of_area(*problem.source)),
      counter_steps_(problem.counters.size()),
      left_(problem.counters.size(), 0) {
  highest_.assign(2 * leaves_, 0);
}

void MovableOrder::assign(std::span<const int32_t> order) {
  order_.assign(order.begin(), order.end());
  const auto n = static_cast<int32_t>(order_.size());
  for (int32_t step = 0; step < n; ++step) step_of_[order_[step]] = step;
  std::fill(counter_steps_.begin(), counter_steps_.end(), Span{0, n - 1});
  live_before_[0] = problem_->start_bytes;
  std::fill(highest_.begin(), highest_.end(), 0);
  area_ = 0;
  window_ = order_;
  begin_ = 0;
  simulate_window();
  accept();
}

int32_t MovableOrder::peak_step(uint64_t choice) const {
  size_t node = 1;
  while (node < leaves_) {
    const bool is_left = highest_[2 * node] == highest_[node];
    const bool is_right = highest_[2 * node + 1] == highest_[node];
    node = 2 * node + (is_left && is_right ? (choice >>= 1) & 1 : is_right);
  }
  return std::min(static_cast<int32_t>(node - leaves_), static_cast<int32_t>(order_.size()) - 1);
}

int32_t MovableOrder::latest_end(int32_t begin, int32_t end) const {
  auto latest = static_cast<int32_t>(order_.size());
  for (int32_t step = begin; step < end; ++step) {
    for (const int32_t w : problem_->successors_of(order_[step])) {
      if (step_of_[w] >= end) latest = std::min(latest, step_of_[w]);
    }
  }
  return latest;
}

int32_t MovableOrder::earliest_begin(int32_t begin, int32_t end) const {
  int32_t earliest = 0;
  for (int32_t step = begin; step < end; ++step) {
    for (const int32_t u : problem_->source->predecessors[order_[step]]) {
      if (step_of_[u] < begin) earliest = std::max(earliest, step_of_[u] + 1);
    }
  }
  return earliest;
}

MovableOrder::Cost MovableOrder::try_move(int32_t begin, int32_t middle, int32_t end) {
  begin_ = begin;
  window_.assign(order_.begin() + middle, order_.begin() + end);
  window_.insert(window_.end(), order_.begin() + begin, order_.begin() + middle);
  simulate_window();
  Cost cost{highest_outside(begin, end), area_};
  for (size_t i = 0; i < window_.size(); ++i) {
    cost.peak_bytes = std::max(cost.peak_bytes, during_[i]);
    cost.area += (during_[i] >> area_shift_) - (highest_[leaves_ + begin + i] >> area_shift_);
  }
  return cost;
}

// Runs the window from the live bytes before it. A counter whose last step lies behind the
// window keeps one toucher in hand, so that it never looks like the last.
void MovableOrder::simulate_window() {
  const auto end = begin_ + static_cast<int32_t>(window_.size());
  during_.resize(window_.size());
  after_.resize(window_.size());
  for (const int32_t op : window_) {
    for (const int32_t c : problem_->counters_of(op)) ++left_[c];
  }
  for (const int32_t op : window_) {
    for (const int32_t c : problem_->counters_of(op)) {
      // Each counter once, when its touches in the window are complete but not yet marked.
      if (left_[c] <= 0) continue;
      const Span steps = counter_steps_[c];
      const int32_t here = left_[c];
      left_[c] = -(steps.first >= begin_ ? problem_->counters[c].touchers
                                         : here + (steps.last >= end ? 1 : 0));
    }
  }
  for (const int32_t op : window_) {
    for (const int32_t c : problem_->counters_of(op)) left_[c] = std::abs(left_[c]);
  }
  int64_t live = live_before_[begin_];
  for (size_t i = 0; i < window_.size(); ++i) {
    const Effect effect = problem_->effect_of(window_[i], left_.data());
    during_[i] = live + effect.during;
    after_[i] = live += effect.after;
    for (const int32_t c : problem_->counters_of(window_[i])) --left_[c];
  }
  for (const int32_t op : window_) {
    for (const int32_t c : problem_->counters_of(op)) left_[c] = 0;
  }
}

void MovableOrder::accept() {
  for (size_t i = 0; i < window_.size(); ++i) {
    const int32_t step = begin_ + static_cast<int32_t>(i);
    order_[step] = window_[i];
    step_of_[window_[i]] = step;
    live_before_[step + 1] = after_[i];
    area_ += (during_[i] >> area_shift_) - (highest_[leaves_ + step] >> area_shift_);
    highest_[leaves_ + step] = during_[i];
  }
  settle_counters();
  settle_tree();
}

// A counter's first (last) step inside the window stays inside: the same ops are there.
void MovableOrder::settle_counters() {
  const auto end = begin_ + static_cast<int32_t>(window_.size());
  for (int32_t step = begin_; step < end; ++step) {
    for (const int32_t c : problem_->counters_of(order_[step])) {
      Span& steps = counter_steps_[c];
      if (steps.last < end) steps.last = step;
    }
  }
  for (int32_t step = end - 1; step >= begin_; --step) {
    for (const int32_t c : problem_->counters_of(order_[step])) {
      Span& steps = counter_steps_[c];
      if (steps.first >= begin_) steps.first = step;
    }
  }
}

void MovableOrder::settle_tree() {
  if (window_.empty()) return;
  size_t low = leaves_ + begin_;
  size_t high = low + window_.size() - 1;
  while (low > 1) {
    low >>= 1;
    high >>= 1;
    for (size_t node = low; node <= high; ++node) {
      highest_[node] = std::max(highest_[2 * node], highest_[2 * node + 1]);
    }
  }
}

int64_t MovableOrder::highest_outside(int32_t begin, int32_t end) const {
  int64_t highest = 0;
  const auto cover = [&](size_t low, size_t high) {
    for (; low < high; low >>= 1, high >>= 1) {
      if (low & 1) highest = std::max(highest, highest_[low++]);
      if (high & 1) highest = std::max(highest, highest_[--high]);
    }
  };
  cover(leaves_, leaves_ + begin);
  cover(leaves_ + end, leaves_ + order_.size());
  return highest;
}

}  // namespace regal
