#include "offsets_improve.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "offsets_sections.h"

namespace regal {
namespace {

constexpr int64_t kAnyEnd = std::numeric_limits<int64_t>::max();

struct Start {
  GreedyRule rule;
  FitRule fit;
};

// TFLM's rule first: whatever the limits, the result is never worse than it. The others are sorted
// by how often they came first on the hard public instances, large ones included.
constexpr Start kStarts[] = {
    {GreedyRule::SizeLaterFirst, FitRule::First}, {GreedyRule::Size, FitRule::First},
    {GreedyRule::PeakSize, FitRule::First},       {GreedyRule::TotalWidthArea, FitRule::First},
    {GreedyRule::TotalWidthArea, FitRule::Best},  {GreedyRule::Start, FitRule::Best},
    {GreedyRule::Lifetime, FitRule::Best},        {GreedyRule::Area, FitRule::First},
    {GreedyRule::TotalAreaWidth, FitRule::First}, {GreedyRule::Size, FitRule::Best},
    {GreedyRule::WidthAreaTotal, FitRule::First}, {GreedyRule::SizeLaterFirst, FitRule::Best},
    {GreedyRule::Area, FitRule::Best},            {GreedyRule::PeakSize, FitRule::Best},
};
constexpr int kPatience = 3;  // rounds without gain
constexpr int64_t kNearBest = 64;  // a start gets its rounds if it is within 1/64 of the best

}  // namespace

Improver::Improver(const OffsetProblem& problem, uint64_t seed, int64_t target, SpendNodes spend)
    : problem_(problem),
      target_(target),
      spend_(std::move(spend)),
      placer_(problem),
      random_(seed, 0),
      // Placing n buffers takes about as long as this many nodes of the tree.
      cost_(1 + static_cast<int64_t>(problem.n) * problem.n / 65536),
      best_arena_(kAnyEnd) {}

bool Improver::try_order(std::span<const int32_t> order, FitRule rule) {
  arena_ = placer_.place(order, rule, kAnyEnd);
  if (arena_ < best_arena_) {
    best_arena_ = arena_;
    best_offsets_ = placer_.offsets();
    best_order_.assign(order.begin(), order.end());
    best_rule_ = rule;
  }
  return !spend_(cost_) && !is_done();
}

// Moves what ends above the target from position p to about keep * p; keeps all other orders.
void Improver::move_up(std::vector<int32_t>& order, std::span<const int64_t> offsets, double keep) {
  std::vector<std::pair<double, int32_t>> places;
  places.reserve(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const bool is_high = offsets[order[i]] + problem_.bytes[order[i]] > target_;
    const auto position = static_cast<double>(i);
    places.emplace_back(is_high ? position * keep - 0.5 : position, order[i]);
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < order.size(); ++i) order[i] = places[i].second;
}

void Improver::start() {
  const bool has_hints = std::any_of(problem_.hint.begin(), problem_.hint.end(),
                                     [](int64_t hint) { return hint != kFree; });
  if (has_hints && !try_order(greedy_order(problem_, GreedyRule::Hint), FitRule::First)) return;
  for (const Start& start : kStarts) {
    std::vector<int32_t> order = greedy_order(problem_, start.rule);
    if (!try_order(order, start.fit)) return;
    if (arena_ - best_arena_ > best_arena_ / kNearBest) continue;
    int64_t lowest = arena_;
    for (int since = 0; since < kPatience; ++since) {
      move_up(order, placer_.offsets(), 0.0);
      if (!try_order(order, start.fit)) return;
      if (arena_ >= lowest) continue;
      lowest = arena_;
      since = -1;
    }
  }
}

void Improver::improve(int64_t rounds) {
  std::vector<int32_t> order = best_order_, next;
  std::vector<int64_t> offsets = best_offsets_;
  int64_t arena = best_arena_;
  const FitRule rule = best_rule_;
  for (int64_t round = 0; round < rounds && !is_done(); ++round) {
    next = order;
    move_up(next, offsets, random_.uniform());
    // A random pair in addition, else the same few orders come again and again.
    const auto limit = static_cast<uint32_t>(next.size());
    if (round % 2 == 1) std::swap(next[random_.below(limit)], next[random_.below(limit)]);
    if (!try_order(next, rule)) return;
    if (arena_ > arena) continue;
    arena = arena_;
    order = next;
    offsets = placer_.offsets();
  }
}

}  // namespace regal
