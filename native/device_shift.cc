#include "device_shift.h"

#include <algorithm>

namespace regal {
namespace {

constexpr uint32_t kSizes = 5;      // blocks of up to 1, 2, ..., 2^(kSizes - 1) ops
constexpr uint32_t kDistances = 9;  // shifts by up to 1, 2, ..., 2^(kDistances - 1) ops

}  // namespace

bool BlockShift::shift(std::vector<int32_t>& order, int32_t at, Rng& rng) {
  const auto n = static_cast<int32_t>(order.size());
  const bool is_later = rng.below(2) == 0;
  const int32_t size = 1 + static_cast<int32_t>(rng.below(1u << rng.below(kSizes)));
  const int32_t most = 1 + static_cast<int32_t>(rng.below(1u << rng.below(kDistances)));
  const int32_t first = is_later ? std::max(0, at - size + 1) : at;
  const int32_t last = is_later ? at + 1 : std::min(n, at + size);  // past the block
  mark(order, first, last, is_later, 1);
  int32_t passed = 0;
  while (passed < most) {
    const int32_t next = is_later ? last + passed : first - 1 - passed;
    if (next < 0 || next >= n || is_related_[order[next]]) break;
    ++passed;
  }
  mark(order, first, last, is_later, 0);
  if (passed == 0) return false;
  begin_ = is_later ? first : first - passed;
  middle_ = is_later ? last : first;
  end_ = is_later ? last + passed : last;
  std::rotate(order.begin() + begin_, order.begin() + middle_, order.begin() + end_);
  return true;
}

void BlockShift::undo(std::vector<int32_t>& order) const {
  std::rotate(order.begin() + begin_, order.begin() + (begin_ + end_ - middle_), order.begin() + end_);
}

void BlockShift::mark(const std::vector<int32_t>& order, int32_t first, int32_t last, bool is_later,
                      uint8_t value) {
  for (int32_t i = first; i < last; ++i) {
    const auto related = is_later ? problem_->successors(order[i]) : problem_->source->predecessors[order[i]];
    for (const int32_t op : related) is_related_[op] = value;
  }
}

}  // namespace regal
