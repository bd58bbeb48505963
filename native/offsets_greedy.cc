#include "offsets_greedy.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "offsets_sections.h"

namespace regal {
namespace {

// Larger keys come first.
using Keys = std::array<int64_t, 3>;

// Per section the most live bytes; per buffer the most of its sections.
std::vector<int64_t> most_live_of(const OffsetProblem& problem) {
  const std::vector<int64_t> live = live_bytes(problem);
  // A sparse table answers each range in O(1), so that 60,000 long buffers stay cheap.
  std::vector<std::vector<int64_t>> table = {live};
  for (size_t width = 1; width * 2 <= live.size(); width *= 2) {
    const std::vector<int64_t>& half = table.back();
    std::vector<int64_t> row(live.size() - width * 2 + 1);
    for (size_t i = 0; i < row.size(); ++i) row[i] = std::max(half[i], half[i + width]);
    table.push_back(std::move(row));
  }
  std::vector<int64_t> most(problem.n, 0);
  for (int32_t b = 0; b < problem.n; ++b) {
    for (const SectionRun run : problem.runs_of(b)) {
      const auto length = static_cast<size_t>(run.end - run.begin);
      size_t level = 0;
      while (size_t{2} << level <= length) ++level;
      const std::vector<int64_t>& row = table[level];
      most[b] = std::max({most[b], row[run.begin], row[run.end - (size_t{1} << level)]});
    }
  }
  return most;
}

Keys keys_of(const OffsetProblem& problem, GreedyRule rule, int32_t b,
             const std::vector<int64_t>& most_live, int64_t peak) {
  const int64_t bytes = problem.bytes[b], width = problem.width[b];
  const int64_t area = area_of(bytes, width);
  switch (rule) {
    case GreedyRule::Size: return {bytes, 0, -b};
    case GreedyRule::SizeLaterFirst: return {bytes, 0, b};
    case GreedyRule::Area: return {area, bytes, -b};
    case GreedyRule::Lifetime: return {width, bytes, -b};
    case GreedyRule::Start: return {-problem.first_section(b), width, bytes};
    case GreedyRule::WidthAreaTotal: return {width, area, most_live[b]};
    case GreedyRule::TotalAreaWidth: return {most_live[b], area, width};
    case GreedyRule::TotalWidthArea: return {most_live[b], width, area};
    case GreedyRule::PeakSize: return {most_live[b] == peak, bytes, -b};
    case GreedyRule::Hint: break;
  }
  const int64_t hint = problem.hint[b];
  return {hint == kFree ? std::numeric_limits<int64_t>::min() : -hint, bytes, -b};
}

}  // namespace

std::vector<int32_t> greedy_order(const OffsetProblem& problem, GreedyRule rule) {
  const std::vector<int64_t> most_live = most_live_of(problem);
  const int64_t peak = most_live.empty() ? 0 : *std::max_element(most_live.begin(), most_live.end());
  std::vector<Keys> keys(problem.n);
  std::vector<int32_t> order;
  for (int32_t b = 0; b < problem.n; ++b) {
    keys[b] = keys_of(problem, rule, b, most_live, peak);
    if (problem.fixed[b] == kFree) order.push_back(b);
  }
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return keys[a] != keys[b] ? keys[a] > keys[b] : a < b;
  });
  return order;
}

}  // namespace regal
