#pragma once
#include <functional>

#include "offsets_greedy.h"
#include "offsets_place.h"
#include "offsets_types.h"
#include "rng.h"

namespace regal {

// Called after each placed order with its cost in nodes; true means stop.
using SpendNodes = std::function<bool(int64_t cost)>;

// Better and better placements from orders: every order is placed by the same greedy routine, and
// what ended up too high is placed earlier the next time.
class Improver {
 public:
  Improver(const OffsetProblem& problem, uint64_t seed, int64_t target, SpendNodes spend);

  // Tries the greedy rules, each with a few rounds of moving what lies too high to the front.
  void start();

  // Goes on from the best order, up to `rounds` times: what lies too high moves forward by random
  // amounts; changes that make it worse are taken back.
  void improve(int64_t rounds);

  bool is_done() const { return best_arena_ <= target_; }
  const std::vector<int64_t>& best() const { return best_offsets_; }

 private:
  // Places the order and keeps it if it is the best so far; false if the search must stop.
  bool try_order(std::span<const int32_t> order, FitRule rule);
  void move_up(std::vector<int32_t>& order, std::span<const int64_t> offsets, double keep);

  const OffsetProblem& problem_;
  const int64_t target_;
  const SpendNodes spend_;
  Placer placer_;
  Rng random_;
  int64_t cost_;
  int64_t arena_ = 0;  // of the order placed last
  int64_t best_arena_;
  std::vector<int64_t> best_offsets_;
  std::vector<int32_t> best_order_;
  FitRule best_rule_ = FitRule::First;
};

}  // namespace regal
