#include "simulate.h"

#include <algorithm>
#include <bit>

namespace regal {

LiveMemory::LiveMemory(const OrderProblem& problem) : problem_(&problem) { reset(); }

void LiveMemory::reset() {
  const OrderProblem& p = *problem_;
  left_.resize(p.n_storages);
  live_ = 0;
  peak_ = 0;
  for (int32_t s = 0; s < p.n_storages; ++s) {
    left_[s] = static_cast<int32_t>(p.touchers.start[s + 1] - p.touchers.start[s]);
    if (p.is_input[s] && (left_[s] > 0 || p.is_output[s])) live_ += p.bytes[s];
  }
}

uint64_t LiveMemory::in_place_at(int32_t op) const {
  const OrderProblem& p = *problem_;
  const InPlace* pairs = p.in_place.data() + p.in_place_of[op];
  const int64_t n = std::min<int64_t>(p.in_place_of[op + 1] - p.in_place_of[op], 64);
  uint64_t taken = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto untouched = static_cast<int32_t>(p.touchers[pairs[i].out].size());
    bool possible = left_[pairs[i].in] == 1 && left_[pairs[i].out] == untouched;
    for (int64_t j = 0; j < i && possible; ++j) {
      const bool shares = pairs[j].in == pairs[i].in || pairs[j].out == pairs[i].out;
      possible = !(shares && (taken >> j & 1));
    }
    if (possible) taken |= uint64_t{1} << i;
  }
  return taken;
}

LiveMemory::Effect LiveMemory::effect_of(int32_t op) const {
  const OrderProblem& p = *problem_;
  int64_t during = live_;
  int64_t freed = 0;
  for (const int32_t s : p.touched[op]) {
    const int64_t touchers = p.touchers.start[s + 1] - p.touchers.start[s];
    if (left_[s] == touchers && !p.is_input[s]) during += p.bytes[s];
    if (left_[s] == 1 && !p.is_output[s]) freed += p.bytes[s];
  }
  const int64_t after = during - freed;
  if (p.in_place_of[op] != p.in_place_of[op + 1]) {
    for (uint64_t taken = in_place_at(op); taken != 0; taken &= taken - 1) {
      during -= p.bytes[p.in_place[p.in_place_of[op] + std::countr_zero(taken)].in];
    }
  }
  return {during + p.workspace[op], after};
}

int64_t LiveMemory::bytes_during(int32_t op) const { return effect_of(op).during; }

int64_t LiveMemory::change_after(int32_t op) const { return effect_of(op).after - live_; }

int64_t LiveMemory::run(int32_t op) {
  const auto [during, after] = effect_of(op);
  for (const int32_t s : problem_->touched[op]) --left_[s];
  live_ = after;
  peak_ = std::max(peak_, during);
  return during;
}

void LiveMemory::undo(int32_t op) {
  for (const int32_t s : problem_->touched[op]) ++left_[s];
  live_ -= change_after(op);
}

Simulation simulate(const OrderProblem& problem, std::span<const int32_t> order) {
  LiveMemory memory(problem);
  Simulation result;
  result.bytes_at_step.reserve(order.size());
  for (const int32_t op : order) {
    for (uint64_t taken = memory.in_place_at(op); taken != 0; taken &= taken - 1) {
      result.in_place.push_back(problem.in_place[problem.in_place_of[op] + std::countr_zero(taken)]);
    }
    const int64_t during = memory.run(op);
    if (result.peak_step < 0 || during > result.peak_bytes) {
      result.peak_bytes = during;
      result.peak_step = static_cast<int64_t>(result.bytes_at_step.size());
    }
    result.bytes_at_step.push_back(during);
  }
  return result;
}

int64_t peak_of(std::span<const int32_t> order, LiveMemory& memory) {
  memory.reset();
  for (const int32_t op : order) memory.run(op);
  return memory.peak_bytes();
}

}  // namespace regal
