#include "offsets_sections.h"

#include <algorithm>
#include <numeric>

namespace regal {
namespace {

// Every sum of sizes and rounded offsets stays below this; it leaves room to add two of them.
constexpr int64_t kLargestSum = int64_t{1} << 61;

struct ActiveTime {
  int32_t buffer;
  int64_t first_step;
  int64_t last_step;
};

OffsetInputVerdict check_input(const OffsetInput& input) {
  const size_t n = input.bytes.size();
  if (n >= (size_t{1} << 31) || input.first_step.size() != n || input.last_step.size() != n ||
      input.alignment.size() != n || input.fixed.size() != n || input.hint.size() != n ||
      input.gaps.size() % 3 != 0 || input.reserved.size() % 2 != 0) {
    return {OffsetInputFault::BadLength, -1};
  }
  int64_t sum = 0;
  const auto add = [&sum](int64_t value) {
    if (value > kLargestSum - sum) return false;
    sum += value;
    return true;
  };
  for (size_t i = 0; i < n; ++i) {
    const auto id = static_cast<int64_t>(i);
    if (input.bytes[i] <= 0) return {OffsetInputFault::Empty, id};
    if (input.first_step[i] > input.last_step[i]) return {OffsetInputFault::Inverted, id};
    if (input.first_step[i] < -kLargestSum || input.last_step[i] > kLargestSum) {
      return {OffsetInputFault::TooLarge, id};
    }
    if (input.alignment[i] < 1) return {OffsetInputFault::BadAlignment, id};
    if (input.hint[i] < kFree) return {OffsetInputFault::BadOffset, id};
    if (input.fixed[i] < kFree || (input.fixed[i] > 0 && input.fixed[i] % input.alignment[i] != 0)) {
      return {OffsetInputFault::BadOffset, id};
    }
    if (!add(input.bytes[i]) || !add(input.alignment[i]) || !add(input.alignment[i]) ||
        !add(std::max<int64_t>(input.fixed[i], 0))) {
      return {OffsetInputFault::TooLarge, id};
    }
  }
  for (size_t i = 0; i + 1 < input.reserved.size(); i += 2) {
    const int64_t low = input.reserved[i], high = input.reserved[i + 1];
    if (low < 0 || high <= low) return {OffsetInputFault::BadOffset, static_cast<int64_t>(n + i / 2)};
    if (!add(high)) return {OffsetInputFault::TooLarge, static_cast<int64_t>(n + i / 2)};
  }
  return {};
}

// Cuts the gaps out of the lifetimes. Gaps may come in any order and overlap.
OffsetInputVerdict cut_gaps(const OffsetInput& input, std::vector<ActiveTime>& times) {
  const auto n = static_cast<int64_t>(input.bytes.size());
  std::vector<OffsetGap> gaps;
  for (size_t i = 0; i + 2 < input.gaps.size(); i += 3) {
    const int64_t buffer = input.gaps[i];
    if (buffer < 0 || buffer >= n) return {OffsetInputFault::BadGap, buffer};
    gaps.push_back({static_cast<int32_t>(buffer), input.gaps[i + 1], input.gaps[i + 2]});
    if (gaps.back().first_step > gaps.back().last_step) return {OffsetInputFault::BadGap, buffer};
  }
  std::sort(gaps.begin(), gaps.end(), [](const OffsetGap& a, const OffsetGap& b) {
    return a.buffer != b.buffer ? a.buffer < b.buffer : a.first_step < b.first_step;
  });
  size_t next = 0;
  for (int32_t b = 0; b < n; ++b) {
    int64_t from = input.first_step[b];
    const int64_t last = input.last_step[b];
    bool is_over = false;
    for (; next < gaps.size() && gaps[next].buffer == b; ++next) {
      const OffsetGap& gap = gaps[next];
      if (is_over || gap.last_step < from) continue;
      if (gap.first_step > last) continue;
      if (gap.first_step > from) times.push_back({b, from, gap.first_step - 1});
      is_over = gap.last_step >= last;
      if (!is_over) from = gap.last_step + 1;
    }
    if (!is_over) times.push_back({b, from, last});
    if (times.empty() || times.back().buffer != b) return {OffsetInputFault::BadGap, b};
  }
  return {};
}

// Numbers the maximal sets of times that are live together, and writes the runs of each buffer.
// A new section begins at the first start that follows an end: everything before is a subset.
void number_sections(const std::vector<ActiveTime>& times, OffsetProblem& problem) {
  const size_t m = times.size();
  std::vector<int32_t> by_start(m), by_end(m), begin(m), end(m);
  std::iota(by_start.begin(), by_start.end(), 0);
  by_end = by_start;
  std::sort(by_start.begin(), by_start.end(), [&](int32_t a, int32_t b) {
    return times[a].first_step != times[b].first_step ? times[a].first_step < times[b].first_step : a < b;
  });
  std::sort(by_end.begin(), by_end.end(), [&](int32_t a, int32_t b) {
    return times[a].last_step != times[b].last_step ? times[a].last_step < times[b].last_step : a < b;
  });
  int32_t section = 0;
  bool has_started = false;
  size_t i = 0;
  for (size_t j = 0; j < m; ++j) {
    const int64_t last = times[by_end[j]].last_step;
    for (; i < m && times[by_start[i]].first_step <= last; ++i) {
      begin[by_start[i]] = section;
      if (!has_started) problem.section_step.push_back(0);
      problem.section_step.back() = times[by_start[i]].first_step;
      has_started = true;
    }
    if (has_started) ++section;
    has_started = false;
    end[by_end[j]] = section;
  }
  problem.n_sections = section;
  problem.run_start.assign(problem.n + 1, 0);
  for (size_t k = 0; k < m; ++k) {
    // Two runs of one buffer may land in touching sections: then they are one run.
    const int32_t b = times[k].buffer;
    const bool follows = problem.run_start[b + 1] > 0 && problem.runs.back().end >= begin[k];
    if (follows) {
      problem.runs.back().end = std::max(problem.runs.back().end, end[k]);
    } else {
      problem.runs.push_back({begin[k], end[k]});
      ++problem.run_start[b + 1];
    }
  }
  std::partial_sum(problem.run_start.begin(), problem.run_start.end(), problem.run_start.begin());
}

void find_units(OffsetProblem& problem, int64_t n_real) {
  int64_t common = 0;  // divides every alignment
  for (int64_t b = 0; b < n_real; ++b) common = std::gcd(common, problem.alignment[b]);
  common = std::max<int64_t>(common, 1);
  problem.padded = problem.bytes;
  bool is_padded = false;
  int64_t unit = 0;
  for (int64_t b = 0; b < problem.n; ++b) {
    if (!problem.is_reserved[b]) problem.padded[b] = round_up(problem.bytes[b], common);
    is_padded |= problem.padded[b] != problem.bytes[b];
    unit = std::gcd(unit, problem.bytes[b]);
    if (problem.fixed[b] > 0) unit = std::gcd(unit, problem.fixed[b]);
  }
  unit = std::max<int64_t>(unit, 1);
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (const int64_t alignment : problem.alignment) {
      if (unit % alignment == 0) continue;  // sums of units are aligned anyway
      const int64_t smaller = std::gcd(unit, alignment);
      has_changed |= smaller != unit;
      unit = smaller;
    }
  }
  problem.unit = unit;
  // The buffer below the end of the arena, or below a reserved range, needs no padding.
  problem.pad_slack = is_padded ? (common - 1) * (problem.n - n_real + 1) : 0;
}

// The lowest end at which `needed` bytes fit beside the reserved ranges.
int64_t end_beside_reserved(const OffsetProblem& problem, int64_t needed) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (int32_t b = 0; b < problem.n; ++b) {
    if (problem.is_reserved[b]) ranges.emplace_back(problem.fixed[b], problem.fixed[b] + problem.bytes[b]);
  }
  std::sort(ranges.begin(), ranges.end());
  int64_t at = 0;
  for (const auto& [low, high] : ranges) {
    if (needed <= low - at) break;
    needed -= std::max<int64_t>(low - at, 0);
    at = std::max(at, high);
  }
  return at + needed;
}

int64_t bound_of(const OffsetProblem& problem) {
  std::vector<int64_t> needed = live_bytes(problem);
  if (problem.pad_slack > 0) {
    // The highest buffer of a section needs no padding, nor does one below each reserved range.
    std::vector<int64_t> most_padding(problem.n_sections, 0);
    int64_t n_reserved = 0, largest = 0;
    for (int32_t b = 0; b < problem.n; ++b) {
      const int64_t padding = problem.padded[b] - problem.bytes[b];
      n_reserved += problem.is_reserved[b];
      largest = std::max(largest, padding);
      for (const SectionRun run : problem.runs_of(b)) {
        for (int32_t s = run.begin; s < run.end; ++s) {
          most_padding[s] = std::max(most_padding[s], padding);
        }
      }
    }
    for (int32_t s = 0; s < problem.n_sections; ++s) {
      needed[s] = std::max<int64_t>(needed[s] - most_padding[s] - n_reserved * largest, 0);
    }
  }
  int64_t most = needed.empty() ? 0 : *std::max_element(needed.begin(), needed.end());
  if (most > 0) most = end_beside_reserved(problem, most);
  for (int32_t b = 0; b < problem.n; ++b) {
    if (problem.is_reserved[b]) continue;
    most = std::max(most, std::max<int64_t>(problem.fixed[b], 0) + problem.bytes[b]);
  }
  return most;
}

void find_clash(OffsetProblem& problem) {
  std::vector<int32_t> fixed;
  for (int32_t b = 0; b < problem.n; ++b) {
    if (problem.fixed[b] != kFree) fixed.push_back(b);
  }
  std::sort(fixed.begin(), fixed.end(), [&](int32_t a, int32_t b) {
    return problem.fixed[a] != problem.fixed[b] ? problem.fixed[a] < problem.fixed[b] : a < b;
  });
  for (size_t i = 0; i < fixed.size(); ++i) {
    const int64_t end = problem.fixed[fixed[i]] + problem.bytes[fixed[i]];
    for (size_t j = i + 1; j < fixed.size() && problem.fixed[fixed[j]] < end; ++j) {
      if (!do_meet(problem, fixed[i], fixed[j])) continue;
      problem.first_clashing = std::min(fixed[i], fixed[j]);
      problem.second_clashing = std::max(fixed[i], fixed[j]);
      return;
    }
  }
}

// Sorted, disjoint byte ranges that cover the same bytes.
std::vector<std::pair<int64_t, int64_t>> merged(std::span<const int64_t> reserved) {
  std::vector<std::pair<int64_t, int64_t>> ranges, result;
  for (size_t i = 0; i + 1 < reserved.size(); i += 2) ranges.emplace_back(reserved[i], reserved[i + 1]);
  std::sort(ranges.begin(), ranges.end());
  for (const auto& [low, high] : ranges) {
    if (result.empty() || low > result.back().second) {
      result.emplace_back(low, high);
    } else {
      result.back().second = std::max(result.back().second, high);
    }
  }
  return result;
}

}  // namespace

bool do_meet(const OffsetProblem& problem, int32_t a, int32_t b) {
  for (const SectionRun x : problem.runs_of(a)) {
    for (const SectionRun y : problem.runs_of(b)) {
      if (x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

std::vector<int64_t> live_bytes(const OffsetProblem& problem) {
  std::vector<int64_t> live(problem.n_sections + 1, 0);
  for (int32_t b = 0; b < problem.n; ++b) {
    if (problem.is_reserved[b]) continue;
    for (const SectionRun run : problem.runs_of(b)) {
      live[run.begin] += problem.padded[b];
      live[run.end] -= problem.padded[b];
    }
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  live.pop_back();
  return live;
}

int64_t arena_of(const OffsetProblem& problem, std::span<const int64_t> offsets) {
  int64_t arena = 0;
  for (int32_t b = 0; b < problem.n; ++b) {
    if (!problem.is_reserved[b]) arena = std::max(arena, offsets[b] + problem.bytes[b]);
  }
  return arena;
}

OffsetInputVerdict build_offset_problem(const OffsetInput& input, OffsetProblem& problem) {
  const OffsetInputVerdict verdict = check_input(input);
  if (verdict.fault != OffsetInputFault::None) return verdict;
  problem = {};
  const auto n_real = static_cast<int64_t>(input.bytes.size());
  const auto reserved = merged(input.reserved);
  const auto n_reserved = static_cast<int64_t>(reserved.size());
  problem.bytes.assign(input.bytes.begin(), input.bytes.end());
  problem.alignment.assign(input.alignment.begin(), input.alignment.end());
  problem.fixed.assign(input.fixed.begin(), input.fixed.end());
  problem.hint.assign(input.hint.begin(), input.hint.end());
  problem.is_reserved.assign(n_real, 0);
  for (int64_t b = 0; b < n_real; ++b) problem.width.push_back(input.last_step[b] - input.first_step[b] + 1);
  std::vector<ActiveTime> times;
  const OffsetInputVerdict gap_verdict = cut_gaps(input, times);
  if (gap_verdict.fault != OffsetInputFault::None) return gap_verdict;
  if (n_real > 0) {
    const int64_t start = *std::min_element(input.first_step.begin(), input.first_step.end());
    const int64_t end = *std::max_element(input.last_step.begin(), input.last_step.end());
    for (int64_t r = 0; r < n_reserved; ++r) {
      problem.bytes.push_back(reserved[r].second - reserved[r].first);
      problem.alignment.push_back(1);
      problem.fixed.push_back(reserved[r].first);
      problem.hint.push_back(kFree);
      problem.is_reserved.push_back(1);
      problem.width.push_back(end - start + 1);
      times.push_back({static_cast<int32_t>(n_real + r), start, end});
    }
  }
  problem.n = static_cast<int32_t>(problem.bytes.size());
  number_sections(times, problem);
  find_units(problem, n_real);
  find_clash(problem);
  problem.lower_bound = bound_of(problem);
  return {};
}

}  // namespace regal
