#include "ready_set.h"

#include <algorithm>

namespace regal {

ReadySet::ReadySet(int32_t n_ops)
    : firsts_(n_ops), seconds_(n_ops), keys_(n_ops), ops_(n_ops), place_(n_ops, 0) {
  for (size_t size = n_ops; size > kMatch;) {
    size = (size + kMatch - 1) >> kShift;
    levels_.push_back({std::vector<Winner>(size), std::vector<uint8_t>(size, 0), {}});
    levels_.back().stale.reserve(size);
  }
}

int32_t ReadySet::best_within(int64_t limit) {
  const Winner winner = size_ <= kMatch ? match_entries(0, size_) : match_levels();
  if (seconds_[winner.by_second] > limit) return ops_[winner.by_second];
  if (seconds_[winner.by_first] <= limit) return ops_[winner.by_first];
  int32_t best = winner.by_second;
  size_t top = 0;
  while (size_at(top) > kMatch) ++top;
  search(limit, top, 0, size_at(top), best);
  return ops_[best];
}

// Descends where an entry fits and one could still be better than `best`, which fits.
void ReadySet::search(int64_t limit, size_t level, size_t begin, size_t end, int32_t& best) const {
  for (size_t i = begin; i < end; ++i) {
    const auto entry = static_cast<int32_t>(i);
    const Winner winner = level == 0 ? Winner{entry, entry} : levels_[level - 1].winners[i];
    if (seconds_[winner.by_second] > limit || !is_better_first(winner.by_first, best)) continue;
    if (seconds_[winner.by_first] <= limit) {
      best = winner.by_first;
    } else {
      search(limit, level - 1, i << kShift, std::min((i + 1) << kShift, size_at(level - 1)), best);
    }
  }
}

void ReadySet::mark_levels(size_t place) {
  for (Level& level : levels_) {
    place >>= kShift;
    if (level.is_stale[place]) return;
    level.is_stale[place] = 1;
    level.stale.push_back(static_cast<int32_t>(place));
  }
}

ReadySet::Winner ReadySet::match_levels() {
  const size_t top = refresh();
  return match_winners(levels_[top - 1], 0, size_at(top));
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
      if (begin >= size) continue;
      const size_t end = std::min(begin + kMatch, size);
      above.winners[i] =
          level == 0 ? match_entries(begin, end) : match_winners(levels_[level - 1], begin, end);
    }
    above.stale.clear();
  }
  return level;
}

ReadySet::Winner ReadySet::match_winners(const Level& level, size_t begin, size_t end) const {
  Winner best = level.winners[begin];
  for (size_t i = begin + 1; i < end; ++i) {
    const Winner other = level.winners[i];
    if (is_better_first(other.by_first, best.by_first)) best.by_first = other.by_first;
    if (is_better_second(other.by_second, best.by_second)) best.by_second = other.by_second;
  }
  return best;
}

size_t ReadySet::size_at(size_t level) const {
  size_t size = size_;
  for (size_t k = 0; k < level; ++k) size = (size + kMatch - 1) >> kShift;
  return size;
}

}  // namespace regal
