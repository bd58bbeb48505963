#include "downset.h"

#include <algorithm>

namespace regal {

Downset::Downset(const OrderProblem& problem)
    : problem_(&problem),
      memory_(problem),
      waiting_for_(problem.n_ops),
      place_(problem.n_ops),
      bits_((static_cast<size_t>(problem.n_ops) + 63) / 64),
      goal_(problem.n_ops) {
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    waiting_for_[v] = static_cast<int32_t>(problem.predecessors[v].size());
    if (waiting_for_[v] == 0) ready_.push_back(v);
  }
  order_.reserve(problem.n_ops);
}

void Downset::hold_back(std::span<const int32_t> ops) {
  goal_ -= static_cast<int32_t>(ops.size());
  for (const int32_t v : ops) {
    if (waiting_for_[v]++ == 0) ready_.erase(std::find(ready_.begin(), ready_.end(), v));
  }
}

void Downset::run(int32_t op) {
  memory_.run(op);
  const auto at = std::find(ready_.begin(), ready_.end(), op);
  place_[op] = static_cast<int32_t>(at - ready_.begin());
  *at = ready_.back();
  ready_.pop_back();
  for (const int32_t w : problem_->successors[op]) {
    if (--waiting_for_[w] == 0) ready_.push_back(w);
  }
  bits_[op / 64] ^= uint64_t{1} << (op % 64);
  hash_ ^= zobrist(op);
  order_.push_back(op);
}

void Downset::undo() {
  const int32_t op = order_.back();
  order_.pop_back();
  for (const int32_t w : problem_->successors[op]) {
    if (waiting_for_[w]++ == 0) ready_.pop_back();
  }
  // The last ready op had moved into the gap that `op` left; both go back.
  ready_.push_back(op);
  std::swap(ready_.back(), ready_[place_[op]]);
  bits_[op / 64] ^= uint64_t{1} << (op % 64);
  hash_ ^= zobrist(op);
  memory_.undo(op);
}

BitsetTable::BitsetTable(size_t words) : words_(words), slots_(1024, -1) {}

bool BitsetTable::insert(std::span<const uint64_t> bits, uint64_t hash) {
  if (2 * static_cast<size_t>(size_ + 1) > slots_.size()) grow();
  size_t slot = hash & (slots_.size() - 1);
  for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
    const auto i = static_cast<size_t>(slots_[slot]);
    if (hashes_[i] == hash && std::equal(bits.begin(), bits.end(), sets_.begin() + i * words_)) return false;
  }
  slots_[slot] = static_cast<int32_t>(size_++);
  hashes_.push_back(hash);
  sets_.insert(sets_.end(), bits.begin(), bits.end());
  return true;
}

void BitsetTable::grow() {
  slots_.assign(2 * slots_.size(), -1);
  for (int64_t i = 0; i < size_; ++i) {
    size_t slot = hashes_[i] & (slots_.size() - 1);
    while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<int32_t>(i);
  }
}

}  // namespace regal
