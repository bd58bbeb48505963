#include "offsets_tree.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "offsets_sections.h"
#include "rng.h"

namespace regal {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr int32_t kNone = -1;
constexpr int32_t kDeadEnd = -2;


}  // namespace

TreeVerdict OffsetTree::search(int64_t capacity, const TreeStrategy& strategy, const OffsetLimits& limits,
                               int64_t& nodes) {
  limits_ = limits;
  deadline_ns_ = limits.seconds > 0 ? now_ns() + static_cast<int64_t>(limits.seconds * 1e9) : 0;
  nodes_ = 0;
  bool fits = prepare(capacity, strategy);
  if (fits) {
    rank_part(0, problem_.n_sections);
    fits = solve_parts(0, problem_.n_sections, 0, problem_.n_sections);
  }
  nodes += nodes_;
  if (fits) return TreeVerdict::Fits;
  return is_stopped_ ? TreeVerdict::Stopped : TreeVerdict::Infeasible;
}

bool OffsetTree::must_stop() {
  if (is_stopped_) return true;
  ++nodes_;
  is_stopped_ = limits_.nodes > 0 && nodes_ > limits_.nodes;
  if (nodes_ % 256 == 0) {
    if (limits_.cancel != nullptr && limits_.cancel->load(std::memory_order_relaxed)) is_stopped_ = true;
    if (deadline_ns_ > 0 && now_ns() > deadline_ns_) is_stopped_ = true;
  }
  return is_stopped_;
}

// Solves the sections [begin, end); on failure the caller undoes.
bool OffsetTree::solve(int32_t begin, int32_t end) {
  for (;;) {
    const int32_t buffer = pick(begin, end);
    if (buffer == kNone) return true;
    if (buffer == kDeadEnd) return false;
    if (must_stop()) return false;
    const size_t mark = trail_.size();
    if (!breaks_stack_order(buffer) && place(buffer) &&
        solve_parts(begin, end, problem_.first_section(buffer), problem_.end_section(buffer))) {
      return true;
    }
    if (is_stopped_) return false;
    undo(mark);
    if (!push_higher(buffer)) return false;
  }
}

// Splits [begin, end) where no unplaced buffer crosses any more; new cuts lie in [cut_begin, cut_end).
bool OffsetTree::solve_parts(int32_t begin, int32_t end, int32_t cut_begin, int32_t cut_end) {
  if (!options_.decompose) return solve(begin, end);
  bool is_split = false;
  for (int32_t s = std::max(cut_begin, begin) + 1; s < std::min(cut_end, end); ++s) {
    if (crossing_[s] > 0) continue;
    if (!solve_part(begin, s)) return false;
    begin = s;
    is_split = true;
  }
  return is_split ? solve_part(begin, end) : solve(begin, end);
}

bool OffsetTree::solve_part(int32_t begin, int32_t end) {
  const std::vector<int32_t> before = rank_;
  rank_part(begin, end);
  const bool fits = solve(begin, end);
  if (!fits) rank_ = before;
  return fits;
}

// Ranks the unplaced buffers of a part anew: the totals are those of what is left.
void OffsetTree::rank_part(int32_t begin, int32_t end) {
  struct Item {
    std::array<int64_t, 3> keys;
    int32_t buffer;
  };
  std::vector<Item> items;
  for_each_unplaced(unplaced_, 0, [&](int32_t b) {
    if (problem_.first_section(b) < begin || problem_.first_section(b) >= end) return;
    int64_t total = 0;
    for (const SectionRun run : problem_.runs_of(b)) {
      for (int32_t s = run.begin; s < run.end; ++s) total = std::max(total, sections_[s].total);
    }
    int64_t width = problem_.width[b];
    const int64_t bytes = bytes_[b];
    int64_t area = area_of(bytes, width);
    if (strategy_.noise > 0) {
      total = stretched(total, 3 * b);
      width = stretched(width, 3 * b + 1);
      area = stretched(area, 3 * b + 2);
    }
    switch (strategy_.preference) {
      case Preference::WidthAreaTotal: items.push_back({{width, area, total}, b}); break;
      case Preference::TotalAreaWidth: items.push_back({{total, area, width}, b}); break;
      case Preference::TotalWidthArea: items.push_back({{total, width, area}, b}); break;
      case Preference::SizeWidth: items.push_back({{bytes, width, 0}, b}); break;
      case Preference::Random:
        items.push_back({{static_cast<int64_t>(mixed(strategy_.seed * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(b)) >> 1), 0, 0}, b});
        break;
    }
  });
  std::sort(items.begin(), items.end(), [](const Item& x, const Item& y) {
    return x.keys != y.keys ? x.keys > y.keys : x.buffer < y.buffer;
  });
  for (size_t i = 0; i < items.size(); ++i) rank_[items[i].buffer] = static_cast<int32_t>(i);
}

int64_t OffsetTree::stretched(int64_t key, int64_t stream) const {
  const uint64_t draw = mixed(strategy_.seed * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(stream)) >> 40;
  return key + static_cast<int64_t>(static_cast<double>(key) * strategy_.noise * static_cast<double>(draw) * 0x1.0p-24);
}

bool OffsetTree::comes_before(int32_t a, int32_t b) const {
  return bound_[a] != bound_[b] ? bound_[a] < bound_[b] : rank_[a] < rank_[b];
}

// The buffer to decide about, kNone when all of [begin, end) are placed, or kDeadEnd.
int32_t OffsetTree::pick(int32_t begin, int32_t end) const {
  const bool is_lowest = strategy_.branching == Branching::Lowest;
  int32_t buffer = is_lowest ? lowest_in(begin, end) : lowest_of_scarce_section(begin, end);
  // Only a buffer below which nothing fits may be placed. Every step goes strictly lower.
  while (buffer >= 0) {
    const int32_t lower = decidable_below(buffer);
    if (lower == kNone) return buffer;
    buffer = lower;
  }
  return buffer;
}

int32_t OffsetTree::lowest_in(int32_t begin, int32_t end) const {
  int32_t best = kNone;
  int64_t lowest_fit_end = kMax;
  for_each_unplaced(unplaced_, 0, [&](int32_t b) {
    if (problem_.first_section(b) < begin || problem_.first_section(b) >= end) return;
    lowest_fit_end = std::min(lowest_fit_end, fit_[b] + bytes_[b]);
    if (best == kNone || comes_before(b, best)) best = b;
  });
  const bool nothing_blocks = options_.must_block && best != kNone && bound_[best] >= lowest_fit_end;
  return nothing_blocks ? kDeadEnd : best;
}

int32_t OffsetTree::lowest_of_scarce_section(int32_t begin, int32_t end) const {
  int32_t chosen = kNone, fewest = 0;
  for (int32_t s = begin; s < end; ++s) {
    const Section& section = sections_[s];
    if (section.total == 0) continue;
    const int64_t latest_first = capacity_ + problem_.pad_slack - section.total;
    int32_t choices = 0;
    for_each_unplaced(in_section_, s, [&](int32_t b) { choices += bound_[b] <= latest_first; });
    const bool is_better = chosen == kNone || choices < fewest ||
                           (choices == fewest && section.floor < sections_[chosen].floor);
    if (!is_better) continue;
    chosen = s;
    fewest = choices;
  }
  if (chosen == kNone) return kNone;
  int32_t best = kNone;
  for_each_unplaced(in_section_, chosen, [&](int32_t b) {
    if (best == kNone || comes_before(b, best)) best = b;
  });
  return best;
}

// A buffer that must be decided before `buffer`, since it may lie below it.
int32_t OffsetTree::decidable_below(int32_t buffer) const {
  int32_t lower = kNone;
  const auto end_of = [&](int32_t b) { return (options_.must_block ? fit_[b] : bound_[b]) + bytes_[b]; };
  for_each_unplaced(meets_, buffer, [&](int32_t b) {
    if (end_of(b) <= bound_[buffer] && (lower == kNone || end_of(b) < end_of(lower))) lower = b;
  });
  if (lower == kNone || !options_.must_block || fit_[lower] == bound_[lower]) return lower;
  // It was decided to lie higher than it fits: then something must block it there.
  int32_t blocker = kNone;
  for_each_unplaced(meets_, lower, [&](int32_t b) {
    if (bound_[b] >= end_of(lower)) return;
    if (blocker == kNone || comes_before(b, blocker)) blocker = b;
  });
  return blocker == kNone ? kDeadEnd : blocker;
}

bool OffsetTree::breaks_stack_order(int32_t buffer) const {
  if (!options_.order_stacks) return false;
  for (int32_t p = peer_[buffer]; p != buffer; p = peer_[p]) {
    if (offset_[p] == kFree || offset_[p] + bytes_[p] != bound_[buffer]) continue;
    const bool is_aligned = problem_.unit % problem_.alignment[p] == 0 &&
                            problem_.unit % problem_.alignment[buffer] == 0;
    if (is_aligned && (bytes_[p] < bytes_[buffer] || (bytes_[p] == bytes_[buffer] && p > buffer))) {
      return true;
    }
  }
  return false;
}

}  // namespace regal
