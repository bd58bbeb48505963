// Offsets: every placement is legal, every claim about the smallest arena true.
#include <algorithm>
#include <limits>
#include <numeric>

#include "fuzz.h"
#include "offsets_greedy.h"
#include "offsets_place.h"
#include "offsets_sections.h"
#include "offsets_solve.h"
#include "offsets_windows.h"

namespace regal::fuzz {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

struct OffsetRows {
  std::vector<int64_t> first, last, bytes, alignment, fixed, hint, gaps, reserved;
  OffsetInput view() const { return {first, last, bytes, alignment, fixed, hint, gaps, reserved}; }
  int32_t n() const { return static_cast<int32_t>(bytes.size()); }

  bool is_live(int32_t b, int64_t step) const {
    if (step < first[b] || step > last[b]) return false;
    for (size_t i = 0; i < gaps.size(); i += 3) {
      if (gaps[i] == b && gaps[i + 1] <= step && step <= gaps[i + 2]) return false;
    }
    return true;
  }
  bool meets(int32_t a, int32_t b) const {
    for (int64_t step = first[a]; step <= last[a]; ++step) {
      if (is_live(a, step) && is_live(b, step)) return true;
    }
    return false;
  }
};

OffsetRows random_rows(Dice& dice) {
  OffsetRows rows;
  const int64_t scale = dice.one_in(8) ? int64_t{1} << 54 : 1;
  const int32_t alignments = dice.upto(2);
  const bool has_fixed = dice.one_in(4), has_gaps = dice.one_in(4), has_hints = dice.one_in(8);
  for (int32_t b = 0, n = dice.upto(dice.one_in(4) ? 5 : 4); b < n; ++b) {
    rows.first.push_back(dice.upto(5) - 2);
    rows.last.push_back(rows.first.back() + dice.upto(3));
    rows.bytes.push_back(scale * (1 + dice.upto(4)));
    rows.alignment.push_back(alignments == 0 ? 1 : alignments == 1 ? 4 : 1 + dice.upto(5));
    rows.fixed.push_back(has_fixed && dice.one_in(3) ? rows.alignment.back() * dice.upto(3) : kFree);
    rows.hint.push_back(has_hints && dice.one_in(2) ? dice.upto(9) : kFree);
    if (!has_gaps || rows.first[b] == rows.last[b]) continue;
    for (int32_t i = dice.upto(2); i > 0; --i) {
      const int64_t from = rows.first[b] - 1 + dice.upto(3);
      rows.gaps.insert(rows.gaps.end(), {b, from, from + dice.upto(1)});
    }
    bool is_ever_live = false;
    for (int64_t step = rows.first[b]; step <= rows.last[b]; ++step) is_ever_live |= rows.is_live(b, step);
    if (!is_ever_live) rows.gaps.clear();
  }
  for (int32_t i = dice.one_in(4) ? dice.upto(2) : 0; i > 0; --i) {
    const int64_t low = scale * dice.upto(6);
    rows.reserved.insert(rows.reserved.end(), {low, low + scale * (1 + dice.upto(2))});
  }
  return rows;
}

void spoil_rows(OffsetRows& rows, Dice& dice) {
  std::vector<std::vector<int64_t>*> parts = {&rows.first, &rows.last, &rows.bytes, &rows.alignment,
                                              &rows.fixed, &rows.hint, &rows.gaps,  &rows.reserved};
  for (int32_t count = dice.upto(2); count >= 0; --count) {
    std::vector<int64_t>& part = *dice.pick(parts);
    constexpr int64_t kHuge = int64_t{1} << 60;
    const int64_t value = dice.pick<int64_t>(
        {0, -1, -2, 1, 3, kNever, -kNever - 1, kHuge, -kHuge, 2 * kHuge, kHuge / 2 + 1, int64_t{1} << 31});
    if (!part.empty() && !dice.one_in(6)) part[dice.upto(static_cast<int64_t>(part.size()) - 1)] = value;
    else part.push_back(value);
  }
  if (!dice.one_in(4)) return;
  for (int32_t i = 0; i < 12; ++i) rows.reserved.insert(rows.reserved.end(), {100 * i, 100 * i + 1 + dice.upto(120)});
}

// Where [at, at + bytes) of `b` is free; `placed` are the others with an offset.
bool is_free(const OffsetRows& rows, const std::vector<int64_t>& offsets, int32_t b, int64_t at) {
  const int64_t end = at + rows.bytes[b];
  for (size_t i = 0; i < rows.reserved.size(); i += 2) {
    if (at < rows.reserved[i + 1] && rows.reserved[i] < end) return false;
  }
  for (int32_t other = 0; other < rows.n(); ++other) {
    if (other == b || offsets[other] == kFree || !rows.meets(b, other)) continue;
    if (at < offsets[other] + rows.bytes[other] && offsets[other] < end) return false;
  }
  return true;
}

bool is_legal(const OffsetRows& rows, const std::vector<int64_t>& offsets) {
  for (int32_t b = 0; b < rows.n(); ++b) {
    const bool is_kept = rows.fixed[b] == kFree || rows.fixed[b] == offsets[b];
    if (offsets[b] < 0 || offsets[b] % rows.alignment[b] != 0 || !is_kept) return false;
    if (!is_free(rows, offsets, b, offsets[b])) return false;
  }
  return true;
}

int64_t arena_of_rows(const OffsetRows& rows, const std::vector<int64_t>& offsets) {
  int64_t arena = 0;
  for (int32_t b = 0; b < rows.n(); ++b) arena = std::max(arena, offsets[b] + rows.bytes[b]);
  return arena;
}

// The smallest arena: some sequence in which each buffer falls to its lowest free place reaches it.
int64_t best_arena(const OffsetRows& rows) {
  std::vector<int64_t> offsets = rows.fixed;
  std::vector<int32_t> loose;
  for (int32_t b = 0; b < rows.n(); ++b) {
    if (offsets[b] == kFree) loose.push_back(b);
    else if (!is_free(rows, offsets, b, offsets[b])) return kNever;
  }
  int64_t best = kNever;
  do {
    for (const int32_t b : loose) offsets[b] = kFree;
    for (const int32_t b : loose) {
      std::vector<int64_t> places = {0};
      for (size_t i = 1; i < rows.reserved.size(); i += 2) places.push_back(rows.reserved[i]);
      for (int32_t other = 0; other < rows.n(); ++other) {
        if (offsets[other] != kFree) places.push_back(offsets[other] + rows.bytes[other]);
      }
      int64_t lowest = kNever;
      for (const int64_t place : places) {
        const int64_t at = round_up(place, rows.alignment[b]);
        if (at < lowest && is_free(rows, offsets, b, at)) lowest = at;
      }
      offsets[b] = lowest;
    }
    best = std::min(best, arena_of_rows(rows, offsets));
  } while (std::next_permutation(loose.begin(), loose.end()));
  return best;
}

void judge_result(const OffsetRows& rows, const OffsetResult& result, int64_t capacity, int64_t best) {
  const std::vector<int64_t> offsets(result.offsets.begin(),
                                     result.offsets.begin() + std::min<size_t>(result.offsets.size(), rows.n()));
  expect(result.lower_bound <= best || capacity != kFree, "the bound of the arena is one");
  if (!offsets.empty()) {
    expect(is_legal(rows, offsets), "offsets are legal");
    expect(arena_of_rows(rows, offsets) == result.arena_bytes, "the arena is the highest end");
  }
  switch (result.status) {
    case OffsetStatus::Optimal:
      expect(capacity == kFree ? result.arena_bytes == best : result.arena_bytes <= capacity, "the smallest arena");
      break;
    case OffsetStatus::Infeasible:
      expect(best == kNever || (capacity != kFree && capacity < best), "nothing fits");
      break;
    case OffsetStatus::Limit: break;
  }
}

OffsetOptions random_options(Dice& dice, int64_t best) {
  OffsetOptions options;
  if (dice.one_in(2) && best < kNever) options.capacity = std::max<int64_t>(0, best - 2 + dice.upto(4));
  options.limits.nodes = dice.one_in(3) ? 1 + dice.upto(30) : 100'000;
  options.seed = dice.word();
  bool* const switches[] = {&options.tree.decompose,  &options.tree.raise_floors, &options.tree.skip_twins,
                            &options.tree.must_block, &options.tree.order_stacks, &options.tree.not_first};
  if (dice.one_in(2)) for (bool* value : switches) *value = dice.one_in(2);
  return options;
}

void judge_solver(const OffsetRows& rows, const OffsetProblem& problem, Dice& dice) {
  const int64_t best = best_arena(rows);
  expect((problem.has_clash()) == (best == kNever), "fixed buffers clash");
  expect(problem.lower_bound <= best, "the bound of the problem is one");
  const OffsetOptions options = random_options(dice, best);
  const OffsetResult result = solve_offsets(problem, options);
  judge_result(rows, result, options.capacity, best);
  const bool is_decided = options.limits.nodes < 100'000 || result.status != OffsetStatus::Limit;
  expect(is_decided, "tiny problems are decided");
  const OffsetResult again = solve_offsets(problem, options);
  expect(again.offsets == result.offsets && again.nodes == result.nodes, "the same seed gives the same offsets");
  if (best == kNever) return;
  Placer placer(problem);
  for (int32_t rule = 0; rule <= static_cast<int32_t>(GreedyRule::Hint); ++rule) {
    const std::vector<int32_t> order = greedy_order(problem, static_cast<GreedyRule>(rule));
    placer.place(order, dice.one_in(2) ? FitRule::First : FitRule::Best, kNever);
    const std::vector<int64_t> offsets(placer.offsets().begin(), placer.offsets().begin() + rows.n());
    expect(is_legal(rows, offsets), "greedy placements are legal");
  }
}

struct Windows {
  WindowProblem problem;

  bool is_legal(const std::vector<int64_t>& offsets) const {
    for (size_t b = 0; b < offsets.size(); ++b) {
      if (offsets[b] < 0 || offsets[b] % problem.alignment[b] != 0) return false;
      if (problem.fixed[b] != kFree && problem.fixed[b] != offsets[b]) return false;
    }
    for (const WindowPiece& p : problem.pieces) {
      for (const WindowPiece& q : problem.pieces) {
        if (p.buffer >= q.buffer || p.first_step > q.last_step || q.first_step > p.last_step) continue;
        const int64_t a = offsets[p.buffer], b = offsets[q.buffer];
        if (a + p.low < b + q.high && b + q.low < a + p.high) return false;
      }
    }
    return true;
  }
  int64_t best(std::vector<int64_t>& offsets, size_t b, int64_t most) const {
    if (b == problem.bytes.size()) {
      if (!is_legal(offsets)) return kNever;
      int64_t arena = 0;
      for (size_t i = 0; i < b; ++i) arena = std::max(arena, offsets[i] + problem.bytes[i]);
      return arena;
    }
    int64_t lowest = kNever;
    for (offsets[b] = 0; offsets[b] + problem.bytes[b] <= most; ++offsets[b]) {
      lowest = std::min(lowest, best(offsets, b + 1, most));
    }
    return lowest;
  }
};

void judge_windows(Dice& dice) {
  Windows windows;
  WindowProblem& problem = windows.problem;
  for (int32_t b = 0, n = dice.upto(3); b < n; ++b) {
    problem.bytes.push_back(1 + dice.upto(2));
    problem.alignment.push_back(1 + dice.one_in(4));
    problem.fixed.push_back(dice.one_in(6) ? problem.alignment.back() * dice.upto(2) : kFree);
    int64_t step = dice.upto(2);
    for (int32_t i = dice.upto(2); i >= 0; --i) {
      const int64_t last = step + dice.upto(1);
      const int64_t low = dice.upto(problem.bytes.back() - 1);
      problem.pieces.push_back({b, step, last, low, low + 1 + dice.upto(problem.bytes.back() - low - 1)});
      step = last + 1;
    }
  }
  std::vector<int64_t> offsets(problem.bytes.size(), 0);
  constexpr int64_t kEnough = 15;  // three buffers of 3 bytes, one fixed at 4 at most, alignments up to 2
  const int64_t best = windows.best(offsets, 0, kEnough);
  const int64_t capacity = dice.one_in(2) ? dice.upto(9) : kFree;
  const OffsetResult result = solve_windows(problem, capacity, {100'000, 0, nullptr});
  if (!result.offsets.empty()) expect(windows.is_legal(result.offsets), "windows do not overlap");
  expect(capacity != kFree || result.lower_bound <= best, "the bound of windows is one");
  const bool fits = capacity == kFree ? best < kNever : best <= capacity;
  expect((result.status == OffsetStatus::Optimal) == fits, "windows are decided");
  expect(!fits || capacity != kFree || result.arena_bytes == best, "windows reach the smallest arena");
}

}  // namespace

void judge_offsets(Dice& dice) {
  OffsetRows rows = random_rows(dice);
  const bool is_spoiled = dice.one_in(4);
  if (is_spoiled) spoil_rows(rows, dice);
  OffsetProblem problem;
  const OffsetInputVerdict verdict = build_offset_problem(rows.view(), problem);
  expect(is_spoiled || verdict.fault == OffsetInputFault::None, "legal rows are accepted");
  if (verdict.fault == OffsetInputFault::None) {
    if (is_spoiled) solve_offsets(problem, {.capacity = kFree, .limits = {500, 0, nullptr}, .seed = 0, .tree = {}});
    else judge_solver(rows, problem, dice);
  }
  if (dice.one_in(4)) judge_windows(dice);
}

}  // namespace regal::fuzz
