#include "device_ready.h"

#include <algorithm>
#include <bit>

#include "random_keys.h"

namespace regal {
namespace {

constexpr int32_t kFewOps = 2000;  // below, digits of 8 bits sort faster than digits of 11

}  // namespace

ReadyOps::ReadyOps(const CompactDevices& problem)
    : problem_(&problem),
      sorted_(problem.n_ops()),
      unsorted_(problem.n_ops()),
      place_(problem.n_ops()),
      counts_(size_t{1} << (problem.n_ops() < kFewOps ? 8 : 11)) {
  for (int64_t size = problem.n_ops(); bits_.empty() || size > 1;) {
    size = (size + 63) / 64;
    bits_.emplace_back(std::max<int64_t>(size, 1), 0);
  }
}

void ReadyOps::start(std::span<const int64_t> ranks, const Keys& keys, const Timeline& timeline) {
  timeline_ = &timeline;
  keys_ = keys;
  waiting_ = problem_->waiting;
  not_made_.clear();
  sort(ranks);
  for (const int32_t v : problem_->sources) add(v);
}

// Radix sort, stable: falling rank, then rising op.
void ReadyOps::sort(std::span<const int64_t> ranks) {
  const int32_t n = problem_->n_ops();
  for (int32_t v = 0; v < n; ++v) {
    const int64_t key = static_cast<int64_t>(keys_.priority[v]) - int64_t{kNeutralKey};
    const int64_t rank =
        int64_t{kNeutralKey} + ranks[v] + static_cast<int64_t>(keys_.bend * static_cast<double>(key));
    sorted_[v] = {UINT32_MAX - static_cast<uint32_t>(std::clamp<int64_t>(rank, 0, UINT32_MAX)), v};
  }
  const int width = n < kFewOps ? 8 : 11;
  const uint32_t mask = (uint32_t{1} << width) - 1;
  for (int shift = 0; shift < 32; shift += width) {
    std::fill(counts_.begin(), counts_.end(), 0);
    for (const Entry& entry : sorted_) ++counts_[entry.rank >> shift & mask];
    int32_t sum = 0;
    for (int32_t& count : counts_) sum += std::exchange(count, sum);
    for (const Entry& entry : sorted_) unsorted_[counts_[entry.rank >> shift & mask]++] = entry;
    std::swap(sorted_, unsorted_);
  }
  for (int32_t i = 0; i < n; ++i) place_[sorted_[i].op] = i;
}

void ReadyOps::set(int32_t op) {
  int64_t place = place_[op];
  for (auto& level : bits_) {
    uint64_t& word = level[place >> 6];
    const bool was_empty = word == 0;
    word |= uint64_t{1} << (place & 63);
    if (!was_empty) return;
    place >>= 6;
  }
}

void ReadyOps::add(int32_t op) {
  if (keys_.wait.empty() || keys_.wait[op] >= keys_.wait_below) {
    set(op);
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
  while (!not_made_.empty() && (is_empty() || -not_made_.front().first <= now)) {
    now = std::max(now, -not_made_.front().first);
    set(-not_made_.front().second);
    std::pop_heap(not_made_.begin(), not_made_.end());
    not_made_.pop_back();
  }
}

int32_t ReadyOps::next() {
  if (!not_made_.empty()) admit();
  int64_t place = 0;
  for (size_t level = bits_.size(); level-- > 0;) {
    place = place << 6 | std::countr_zero(bits_[level][place]);
  }
  const int32_t op = sorted_[place].op;
  for (auto& level : bits_) {
    uint64_t& word = level[place >> 6];
    word &= word - 1;  // the lowest bit is the one that was found
    if (word != 0) break;
    place >>= 6;
  }
  return op;
}

void ReadyOps::finish(int32_t op) {
  for (const int32_t w : problem_->successors(op)) {
    if (--waiting_[w] == 0) add(w);
  }
}

}  // namespace regal
