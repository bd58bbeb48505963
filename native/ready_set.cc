#include "ready_set.h"

#include <algorithm>

namespace regal {
namespace {

constexpr int kShift = 4;
constexpr size_t kMatch = size_t{1} << kShift;

bool breaks_tie(const ReadyOp& a, const ReadyOp& b) {
  return a.key != b.key ? a.key > b.key : a.op < b.op;
}

bool is_better_first(const ReadyOp& a, const ReadyOp& b) {
  return a.first != b.first ? a.first < b.first : breaks_tie(a, b);
}

bool is_better_second(const ReadyOp& a, const ReadyOp& b) {
  return a.second != b.second ? a.second < b.second : is_better_first(a, b);
}

}  // namespace

ReadySet::ReadySet(int32_t n_ops) : place_(n_ops, -1) {
  entries_.reserve(n_ops);
  for (size_t size = n_ops; size > kMatch;) {
    size = (size + kMatch - 1) >> kShift;
    levels_.push_back({std::vector<Winner>(size), std::vector<uint8_t>(size, 0), {}});
    levels_.back().stale.reserve(size);
  }
}

void ReadySet::clear() {
  while (!entries_.empty()) remove(entries_.back().op);
}

void ReadySet::insert(const ReadyOp& entry) {
  place_[entry.op] = static_cast<int32_t>(entries_.size());
  entries_.push_back(entry);
  mark(entries_.size() - 1);
}

void ReadySet::update(const ReadyOp& entry) {
  entries_[place_[entry.op]] = entry;
  mark(place_[entry.op]);
}

void ReadySet::remove(int32_t op) {
  const int32_t hole = place_[op];
  mark(hole);
  mark(entries_.size() - 1);
  entries_[hole] = entries_.back();
  place_[entries_[hole].op] = hole;
  place_[op] = -1;
  entries_.pop_back();
}

ReadySet::Best ReadySet::best() {
  const size_t top = refresh();
  const Winner winner = match(top, 0, size_at(top));
  return {&entries_[winner.by_first], &entries_[winner.by_second]};
}

const ReadyOp& ReadySet::best_within(int64_t limit) {
  const size_t top = refresh();
  const Winner winner = match(top, 0, size_at(top));
  if (entries_[winner.by_second].second > limit) return entries_[winner.by_second];
  if (entries_[winner.by_first].second <= limit) return entries_[winner.by_first];
  int32_t best = winner.by_second;
  search(limit, top, 0, size_at(top), best);
  return entries_[best];
}

// Descends where an entry fits and could still be better than `best`, which fits.
void ReadySet::search(int64_t limit, size_t level, size_t begin, size_t end, int32_t& best) const {
  for (size_t i = begin; i < end; ++i) {
    const Winner winner = at(level, i);
    if (entries_[winner.by_second].second > limit) continue;
    if (!is_better_first(entries_[winner.by_first], entries_[best])) continue;
    if (entries_[winner.by_first].second <= limit) {
      best = winner.by_first;
    } else if (level > 0) {
      search(limit, level - 1, i << kShift, std::min((i + 1) << kShift, size_at(level - 1)), best);
    }
  }
}

void ReadySet::mark(size_t entry) {
  for (Level& level : levels_) {
    entry >>= kShift;
    if (level.is_stale[entry]) return;
    level.is_stale[entry] = 1;
    level.stale.push_back(static_cast<int32_t>(entry));
  }
}

// Replays stale matches up to the lowest level that one scan can cover; returns that level.
size_t ReadySet::refresh() {
  size_t level = 0;
  for (; size_at(level) > kMatch; ++level) {
    Level& above = levels_[level];
    const size_t size = size_at(level);
    for (const int32_t i : above.stale) {
      above.is_stale[i] = 0;
      const size_t begin = static_cast<size_t>(i) << kShift;
      if (begin < size) above.winners[i] = match(level, begin, std::min(begin + kMatch, size));
    }
    above.stale.clear();
  }
  return level;
}

ReadySet::Winner ReadySet::match(size_t level, size_t begin, size_t end) const {
  Winner best = at(level, begin);
  for (size_t i = begin + 1; i < end; ++i) {
    const Winner other = at(level, i);
    if (is_better_first(entries_[other.by_first], entries_[best.by_first])) {
      best.by_first = other.by_first;
    }
    if (is_better_second(entries_[other.by_second], entries_[best.by_second])) {
      best.by_second = other.by_second;
    }
  }
  return best;
}

ReadySet::Winner ReadySet::at(size_t level, size_t i) const {
  if (level > 0) return levels_[level - 1].winners[i];
  return {static_cast<int32_t>(i), static_cast<int32_t>(i)};
}

size_t ReadySet::size_at(size_t level) const {
  size_t size = entries_.size();
  for (size_t k = 0; k < level; ++k) size = (size + kMatch - 1) >> kShift;
  return size;
}

}  // namespace regal
