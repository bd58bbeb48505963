#pragma once
#include <functional>

#include "offsets_place.h"
#include "offsets_types.h"
#include "rng.h"

namespace regal {

// Called after each placed order with its cost in nodes; true means stop.
using SpendNodes = std::function<bool(int64_t cost)>;

// Better and better placements from orders: every order is placed by the same greedy rule, and
// what ended up too high is placed earlier the next time.
class Improver {
 public:
  Improver(const OffsetProblem& problem, uint64_t seed);

  // Tries the greedy rules, with the lowest and with the smallest gap.
  void start(int64_t target, const SpendNodes& spend);

  // Changes the best order up to `rounds` times, until its arena is at most `target`.
  void improve(int64_t target, int64_t rounds, const SpendNodes& spend);

  const std::vector<int64_t>& best() const { return best_offsets_; }
  int64_t best_arena() const { return best_arena_; }

 private:
  int64_t try_order(std::span<const int32_t> order, FitRule rule);

  const OffsetProblem& problem_;
  Placer placer_;
  Rng random_;
  int64_t cost_;
  std::vector<int64_t> best_offsets_;
  std::vector<int32_t> best_order_;
  FitRule best_rule_ = FitRule::First;
  int64_t best_arena_;
};

}  // namespace regal
