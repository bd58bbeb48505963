// Annealing and contraction: legal schedules, judged right, the same for every number of threads.
#include <algorithm>
#include <atomic>

#include "device_anneal.h"
#include "device_check.h"
#include "device_contract.h"
#include "fuzz_devices.h"

namespace regal::fuzz {
namespace {

void judge_contraction(const CompactDevices& problem, const Contraction& contraction) {
  const DeviceProblem& whole = *problem.source;
  const DeviceProblem& small = contraction.problem;
  expect(small.n_ops <= whole.n_ops, "a contraction is not larger");
  std::vector<int32_t> order(small.n_ops);
  const CompactDevices compact(small);
  const std::vector<int32_t> ops = expanded(contraction, compact.topological);
  std::vector<int32_t> place(whole.n_ops, -1);
  for (size_t i = 0; i < ops.size(); ++i) place[ops[i]] = static_cast<int32_t>(i);
  expect(std::ranges::find(place, -1) == place.end(), "every op is part of a joined one");
  for (int32_t v = 0; v < whole.n_ops; ++v) {
    for (const int32_t u : whole.predecessors[v]) expect(place[u] < place[v], "and runs after what it needs");
    for (int32_t d = 0; d < whole.n_devices; ++d) {
      const bool may_run = small.may_run_on(contraction.whole_of[v], d);
      expect(!may_run || whole.may_run_on(v, d), "on a device that may run it");
    }
  }
}

AnnealSettings random_settings(const DeviceProblem& problem, std::vector<int32_t>& placements,
                               std::vector<int32_t>& orders, Dice& dice) {
  for (int32_t i = dice.upto(2); i > 0; --i) {
    const DeviceSchedule schedule = random_device_schedule(problem, dice);
    placements.insert(placements.end(), schedule.placement.begin(), schedule.placement.end());
    orders.insert(orders.end(), schedule.order.begin(), schedule.order.end());
  }
  AnnealSettings settings;
  settings.objective = dice.pick<Objective>({{1, 0}, {0, 1}, {0.5, 2}});
  settings.seed = dice.word();
  settings.chains = 1 + dice.upto(2);
  settings.stop.evaluations = 1 + dice.upto(40);
  settings.placements = placements;
  settings.orders = orders;
  return settings;
}

}  // namespace

void judge_annealing(const DeviceProblem& problem, Dice& dice) {
  const CompactDevices compact(problem);
  judge_contraction(compact, contract(compact));
  std::vector<int32_t> placements, orders;
  AnnealSettings settings = random_settings(problem, placements, orders, dice);
  const std::atomic<bool> cancelled{false};
  const DeviceSearchResult found = anneal_devices(compact, settings, cancelled);
  DeviceFigures figures, judged;
  expect(is_well_formed(problem, found.schedule), "an annealed schedule is well-formed");
  expect(simulate_devices(problem, found.schedule, figures), "it runs");
  std::vector<int64_t> rows;
  for (const InPlace& pair : figures.in_place) rows.insert(rows.end(), {pair.op, pair.in, pair.out});
  const ScheduleVerdict verdict = check_schedule(problem, found.schedule, rows, judged);
  expect(verdict.fault == ScheduleFault::None, "it is legal");
  expect(found.score.time == judged.time, "its time is that of the checker");
  expect(found.score.overflow == judged.overflow, "and so is its overflow");
  expect(settings.objective.per_byte == 0 || found.score.peak == judged.most(), "and its peak");
  if (!dice.one_in(8)) return;
  settings.threads = 2;
  const DeviceSearchResult other = anneal_devices(compact, settings, cancelled);
  expect(other.schedule.placement == found.schedule.placement && other.schedule.order == found.schedule.order &&
             other.evaluations == found.evaluations,
         "threads change nothing");
}

}  // namespace regal::fuzz
