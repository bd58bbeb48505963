#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "offsets_sections.h"
#include "offsets_tree.h"

// The state of a tree search node: bounds, floors, and how to take a change back.
namespace regal {

OffsetTree::OffsetTree(const OffsetProblem& problem, const TreeOptions& options)
    : problem_(problem), options_(options), words_((problem.n + 63) / 64) {
  const int64_t n = problem.n, n_sections = problem.n_sections;
  meets_.assign(n * words_, 0);
  in_section_.assign(n_sections * words_, 0);
  const auto bit = [](int32_t b) { return uint64_t{1} << (b % 64); };
  std::vector<std::vector<int32_t>> starts(n_sections);
  for (int32_t b = 0; b < problem.n; ++b) {
    for (const SectionRun run : problem.runs_of(b)) {
      starts[run.begin].push_back(b);
      for (int64_t s = run.begin; s < run.end; ++s) in_section_[s * words_ + b / 64] |= bit(b);
    }
  }
  // A run meets what is live where it begins, and what begins while it lasts.
  for (int32_t b = 0; b < problem.n; ++b) {
    uint64_t* row = &meets_[int64_t{b} * words_];
    for (const SectionRun run : problem.runs_of(b)) {
      for (int32_t w = 0; w < words_; ++w) row[w] |= in_section_[int64_t{run.begin} * words_ + w];
      for (int32_t s = run.begin + 1; s < run.end; ++s) {
        for (const int32_t other : starts[s]) row[other / 64] |= bit(other);
      }
    }
    row[b / 64] &= ~bit(b);
  }
  link_peers();
}

// Buffers of one lifetime form a ring; those of equal size and alignment a chain by id.
void OffsetTree::link_peers() {
  next_twin_.assign(problem_.n, -1);
  peer_.resize(problem_.n);
  std::iota(peer_.begin(), peer_.end(), 0);
  std::map<std::pair<int32_t, int32_t>, int32_t> first_of;
  std::map<std::tuple<int32_t, int32_t, int64_t, int64_t>, int32_t> latest_twin;
  for (int32_t b = 0; b < problem_.n; ++b) {
    if (problem_.fixed[b] != kFree || problem_.runs_of(b).size() != 1) continue;
    const int32_t begin = problem_.first_section(b), end = problem_.end_section(b);
    const auto [first, is_first] = first_of.try_emplace({begin, end}, b);
    if (!is_first) {
      peer_[b] = peer_[first->second];
      peer_[first->second] = b;
    }
    const auto key = std::make_tuple(begin, end, problem_.bytes[b], problem_.alignment[b]);
    const auto [latest, is_new] = latest_twin.try_emplace(key, b);
    if (is_new) continue;
    next_twin_[latest->second] = b;
    latest->second = b;
  }
}

bool OffsetTree::prepare(int64_t capacity, const TreeStrategy& strategy) {
  const int32_t n = problem_.n;
  capacity_ = capacity;
  strategy_ = strategy;
  rank_.assign(n, 0);
  bytes_ = problem_.bytes;
  padded_ = problem_.padded;
  unplaced_.assign(words_, 0);
  bound_.assign(n, 0);
  fit_.assign(n, 0);
  offset_.assign(n, kFree);
  sections_.assign(problem_.n_sections, {});
  crossing_.assign(problem_.n_sections + 1, 0);
  trail_.clear();
  dirty_.clear();
  is_dirty_.assign(problem_.n_sections, 0);
  is_stopped_ = false;
  for (int32_t b = 0; b < n; ++b) {
    if (problem_.is_reserved[b]) {
      offset_[b] = problem_.fixed[b];
      if (problem_.fixed[b] >= capacity) continue;  // past the end: forbids nothing
      offset_[b] = kFree;
      bytes_[b] = padded_[b] = std::min(bytes_[b], capacity - problem_.fixed[b]);
    }
    unplaced_[b / 64] |= uint64_t{1} << (b % 64);
    if (problem_.fixed[b] != kFree) bound_[b] = fit_[b] = problem_.fixed[b];
    for (const SectionRun run : problem_.runs_of(b)) {
      for (int32_t s = run.begin; s < run.end; ++s) sections_[s].total += padded_[b];
    }
    for (int32_t s = problem_.first_section(b) + 1; s < problem_.end_section(b); ++s) ++crossing_[s];
    mark_dirty(b);
  }
  for (int32_t b = 0; options_.skip_twins && b < n; ++b) {
    if (next_twin_[b] >= 0 && !raise_bound(next_twin_[b], bound_[b] + bytes_[b], true)) return false;
  }
  for (int32_t b = 0; b < n; ++b) {
    if (offset_[b] == kFree && bound_[b] + bytes_[b] > capacity_) return false;
  }
  return settle();
}

bool OffsetTree::place(int32_t buffer) {
  const int64_t offset = bound_[buffer], top = offset + bytes_[buffer];
  offset_[buffer] = offset;
  unplaced_[buffer / 64] &= ~(uint64_t{1} << (buffer % 64));
  trail_.push_back({Kind::Placed, buffer, 0});
  for (const SectionRun run : problem_.runs_of(buffer)) {
    for (int32_t s = run.begin; s < run.end; ++s) {
      trail_.push_back({Kind::Floor, s, sections_[s].floor});
      sections_[s].floor = top;
      sections_[s].total -= padded_[buffer];
    }
  }
  for (int32_t s = problem_.first_section(buffer) + 1; s < problem_.end_section(buffer); ++s) --crossing_[s];
  mark_dirty(buffer);
  bool fits = true;
  for_each_unplaced(meets_, buffer, [&](int32_t other) {
    fits = fits && raise_bound(other, top, true);
  });
  return settle() && fits;
}

void OffsetTree::unplace(int32_t buffer) {
  offset_[buffer] = kFree;
  unplaced_[buffer / 64] |= uint64_t{1} << (buffer % 64);
  for (const SectionRun run : problem_.runs_of(buffer)) {
    for (int32_t s = run.begin; s < run.end; ++s) sections_[s].total += padded_[buffer];
  }
  for (int32_t s = problem_.first_section(buffer) + 1; s < problem_.end_section(buffer); ++s) ++crossing_[s];
}

// The buffer is not at its bound: then it rests on a neighbor that is still unplaced.
bool OffsetTree::push_higher(int32_t buffer) {
  int64_t lowest_top = kMax;
  for_each_unplaced(meets_, buffer, [&](int32_t other) {
    lowest_top = std::min(lowest_top, bound_[other] + bytes_[other]);
  });
  const bool fits = lowest_top != kMax && raise_bound(buffer, std::max(lowest_top, bound_[buffer] + 1), false);
  return settle() && fits;
}

// The buffer lies at `bound` or higher. `is_blocked`: because it does not fit lower.
bool OffsetTree::raise_bound(int32_t buffer, int64_t bound, bool is_blocked) {
  for (; buffer >= 0; buffer = options_.skip_twins ? next_twin_[buffer] : -1) {
    if (offset_[buffer] != kFree) return true;
    bound = round_up(bound, problem_.alignment[buffer]);
    if (is_blocked && bound > fit_[buffer]) {
      trail_.push_back({Kind::Fit, buffer, fit_[buffer]});
      fit_[buffer] = bound;
    }
    if (bound > bound_[buffer]) {
      const bool is_fixed = problem_.fixed[buffer] != kFree;
      if (is_fixed || bound > capacity_ - bytes_[buffer]) return false;
      trail_.push_back({Kind::Bound, buffer, bound_[buffer]});
      bound_[buffer] = bound;
      mark_dirty(buffer);
    } else if (!is_blocked) {
      return true;
    }
    bound += bytes_[buffer];  // a twin lies above
  }
  return true;
}

void OffsetTree::mark_dirty(int32_t buffer) {
  for (const SectionRun run : problem_.runs_of(buffer)) {
    for (int32_t s = run.begin; s < run.end; ++s) {
      if (is_dirty_[s]) continue;
      is_dirty_[s] = 1;
      dirty_.push_back(s);
    }
  }
}

// Looks again at the sections that changed, until nothing changes: do they still fit?
bool OffsetTree::settle() {
  bool fits = true;
  while (!dirty_.empty()) {
    const int32_t s = dirty_.back();
    dirty_.pop_back();
    is_dirty_[s] = 0;
    fits = fits && (sections_[s].total == 0 || settle_section(s));
  }
  return fits;
}

bool OffsetTree::settle_section(int32_t s) {
  Section& section = sections_[s];
  int64_t lowest = kMax, top = kMax, next_top = kMax;
  int32_t top_buffer = -1;
  const int64_t latest_first = capacity_ + problem_.pad_slack - section.total;
  bool some_not_first = false;
  for_each_unplaced(in_section_, s, [&](int32_t b) {
    lowest = std::min(lowest, bound_[b]);
    some_not_first |= bound_[b] > latest_first;
    const int64_t own_top = bound_[b] + bytes_[b];
    if (own_top < top) {
      next_top = top;
      top = own_top;
      top_buffer = b;
    } else {
      next_top = std::min(next_top, own_top);
    }
  });
  if (options_.raise_floors && lowest > section.floor) {
    trail_.push_back({Kind::Floor, s, section.floor});
    section.floor = lowest;
  }
  if (section.floor > latest_first) return false;
  if (!options_.not_first || !some_not_first) return true;
  bool fits = true;
  for_each_unplaced(in_section_, s, [&](int32_t b) {
    if (fits && bound_[b] > latest_first) {
      const int64_t below = b == top_buffer ? next_top : top;
      fits = below != kMax && raise_bound(b, below, false);
    }
  });
  return fits;
}

void OffsetTree::undo(size_t mark) {
  for (; trail_.size() > mark; trail_.pop_back()) {
    const Change& change = trail_.back();
    switch (change.kind) {
      case Kind::Floor: sections_[change.index].floor = change.before; break;
      case Kind::Bound: bound_[change.index] = change.before; break;
      case Kind::Fit: fit_[change.index] = change.before; break;
      case Kind::Placed: unplace(change.index); break;
    }
  }
}

}  // namespace regal
