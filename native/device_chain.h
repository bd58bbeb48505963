#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "device_anneal.h"
#include "device_compact.h"
#include "device_list.h"
#include "device_memory.h"
#include "device_neighbors.h"
#include "device_residents.h"
#include "device_shift.h"
#include "device_timeline.h"
#include "rng.h"

namespace regal {

// A placement and what orders it: a sequence of all ops, or, without one, list scheduling with
// extras. And what the schedule is worth.
struct Plan {
  std::vector<int32_t> placement;
  std::vector<int64_t> extra;
  std::vector<int32_t> sequence;
  Score score;
};

// What a plan is worth. One per thread.
class PlanJudge {
 public:
  PlanJudge(const CompactDevices& problem, const Objective& objective);

  // Fills the score, but for the overflow of residents, which must be there. With a limit of the
  // value it may give up: false, if the value is above the limit.
  bool judge(const Plan& plan, double limit, Score& score);
  // Of the plan that was judged last: its order, and the ops that its value depends on most.
  std::span<const int32_t> order(const Plan& plan) const;
  void find_critical(const Plan& plan, std::vector<int32_t>& ops) const;
  DeviceSchedule schedule_of(const Plan& plan);

 private:
  void replay(const Plan& plan);

  Objective objective_;
  bool needs_memory_;
  ListScheduler list_;
  Timeline timeline_;
  MemoryMeter meter_;
};

// One chain of the annealing.
class Chain {
 public:
  Chain(const CompactDevices& problem, const AnnealSettings& settings, int32_t number);

  void start(const Plan& plan);
  // Proposes and judges until `evaluations` schedules were simulated.
  void run(int64_t evaluations);
  const Plan& best() const { return best_; }

 private:
  void begin_cycle();
  double temperature() const;
  bool propose_order();
  bool propose_extra();
  bool propose_shift();
  bool propose_move();
  int32_t any_op();
  bool try_plan(int64_t overflow);
  void put(int32_t group, int32_t device);

  const CompactDevices* problem_;
  Objective objective_;
  Rng rng_;
  PlanJudge judge_;
  Neighbors neighbors_;
  BlockShift shift_;
  ResidentUse residents_;
  Plan now_;
  Plan best_;
  std::vector<int32_t> order_;     // of `now_`
  std::vector<int32_t> critical_;  // of `now_`
  std::vector<std::pair<int32_t, int32_t>> moved_;  // group, device that it came from
  Move move_;
  Move back_;
  double per_overflow_ = 0;  // what a byte too much is worth, as a share of the value
  int64_t done_ = 0;         // evaluations
  int64_t cycle_start_ = 0;
  int64_t cycle_length_ = 0;
  int32_t cycle_ = 0;
};

}  // namespace regal
