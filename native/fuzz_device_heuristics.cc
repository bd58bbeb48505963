// Schedules without search: legal, judged right, none better than a bound.
#include <algorithm>

#include "device_bounds.h"
#include "device_check.h"
#include "device_heuristics.h"
#include "device_heuristics_groups.h"
#include "fuzz_devices.h"

namespace regal::fuzz {
namespace {

void judge_named(const DeviceProblem& problem, const NamedSchedule& named, const Objective& objective) {
  DeviceFigures figures, judged;
  expect(is_well_formed(problem, named.schedule), "a heuristic schedule is well-formed");
  expect(simulate_devices(problem, named.schedule, figures), "it runs");
  std::vector<int64_t> rows;
  for (const InPlace& pair : figures.in_place) rows.insert(rows.end(), {pair.op, pair.in, pair.out});
  const ScheduleVerdict verdict = check_schedule(problem, named.schedule, rows, judged);
  expect(verdict.fault == ScheduleFault::None, "it is legal");
  const Score score = score_of(judged, objective);
  expect(!score.is_better_than(named.score) && !named.score.is_better_than(score), "it is judged right");
  expect(device_time_bound(problem) <= judged.time, "it is not faster than the bound");
}

}  // namespace

void judge_heuristics(const DeviceProblem& problem, Dice& dice) {
  const Objective objective = dice.pick<Objective>({{1, 0}, {0, 1}, {0.5, 2}});
  int64_t evaluations = 0;
  const std::vector<NamedSchedule> found =
      heuristic_schedules(problem, kDeviceRules, objective, evaluations);
  expect(evaluations == static_cast<int64_t>(found.size()) && evaluations > 0, "all that is judged is returned");
  for (size_t i = 0; i < found.size(); ++i) {
    judge_named(problem, found[i], objective);
    expect(i == 0 || !found[i].score.is_better_than(found[i - 1].score), "the best comes first");
  }
  std::vector<int32_t> favorites(problem.n_ops);
  for (int32_t& child : favorites) child = dice.upto(problem.n_ops) - 1;
  judge_named(problem, favorite_schedule(problem, favorites, dice.one_in(2), objective), objective);
  const int64_t first = dice.upto(100);
  const NamedSchedule random = random_schedule(problem, objective, dice.word(), first, 1 + dice.upto(3), 1);
  judge_named(problem, random, objective);
  std::vector<std::vector<int32_t>> wishes(1 + dice.upto(1), std::vector<int32_t>(problem.n_ops));
  for (std::vector<int32_t>& wish : wishes) {
    for (int32_t& device : wish) device = dice.upto(problem.n_devices - 1);
  }
  const auto order = static_cast<PlacementOrder>(dice.upto(static_cast<int64_t>(PlacementOrder::List)));
  for (const NamedSchedule& named : placed_schedules(problem, wishes, order, true, objective, 1)) {
    judge_named(problem, named, objective);
  }
}

}  // namespace regal::fuzz
