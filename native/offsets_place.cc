#include "offsets_place.h"

#include <algorithm>
#include <limits>

#include "offsets_sections.h"

namespace regal {

Placer::Placer(const OffsetProblem& problem) : problem_(problem) {
  for (int32_t b = 0; b < problem.n; ++b) {
    if (problem.fixed[b] != kFree) fixed_.push_back(b);
    has_gaps_ |= problem.runs_of(b).size() > 1;
  }
  hulls_.reserve(problem.n);
  placed_.reserve(problem.n);
  ids_.reserve(problem.n);
}

int64_t Placer::place(std::span<const int32_t> order, FitRule rule, int64_t capacity) {
  hulls_.clear();
  placed_.clear();
  ids_.clear();
  offsets_.assign(problem_.n, kFree);
  int64_t arena = 0;
  for (const int32_t b : fixed_) {
    insert(b, problem_.fixed[b]);
    if (!problem_.is_reserved[b]) arena = std::max(arena, problem_.fixed[b] + problem_.bytes[b]);
  }
  for (const int32_t b : order) {
    const int64_t offset = find(b, rule);
    if (offset > capacity - problem_.bytes[b]) continue;
    insert(b, offset);
    arena = std::max(arena, offset + problem_.bytes[b]);
  }
  return arena;
}

void Placer::insert(int32_t buffer, int64_t offset) {
  offsets_[buffer] = offset;
  const auto at = std::upper_bound(placed_.begin(), placed_.end(), offset,
                                   [](int64_t value, const Placed& item) { return value < item.offset; });
  const auto position = at - placed_.begin();
  placed_.insert(at, {offset, offset + problem_.bytes[buffer]});
  hulls_.insert(hulls_.begin() + position, {problem_.first_section(buffer), problem_.end_section(buffer)});
  ids_.insert(ids_.begin() + position, buffer);
}

int64_t Placer::find(int32_t buffer, FitRule rule) const {
  const int32_t begin = problem_.first_section(buffer), end = problem_.end_section(buffer);
  const int64_t bytes = problem_.bytes[buffer], alignment = problem_.alignment[buffer];
  int64_t top = 0, best = kFree, smallest = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < hulls_.size(); ++i) {
    if (hulls_[i].begin >= end || hulls_[i].end <= begin ||
        (has_gaps_ && !do_meet(problem_, buffer, ids_[i]))) {
      continue;
    }
    const int64_t at = round_up(top, alignment), gap = placed_[i].offset - at;
    if (gap >= bytes) {
      if (rule == FitRule::First) return at;
      if (gap < smallest) {
        smallest = gap;
        best = at;
      }
    }
    top = std::max(top, placed_[i].end);
  }
  return best != kFree ? best : round_up(top, alignment);
}

}  // namespace regal
