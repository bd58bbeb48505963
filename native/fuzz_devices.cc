// Simulation, checker and bounds of several devices, against the definitions.
#include "fuzz_devices.h"

#include <algorithm>

#include "bounds.h"
#include "device_bounds.h"
#include "device_check.h"

namespace regal::fuzz {
namespace {

bool are_equal(const std::vector<InPlace>& a, const std::vector<InPlace>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const InPlace& x, const InPlace& y) {
    return x.op == y.op && x.in == y.in && x.out == y.out;
  });
}

bool are_equal(const DeviceFigures& a, const DeviceFigures& b) {
  return a.time == b.time && a.overflow == b.overflow && a.peak == b.peak && a.resident == b.resident &&
         a.op_start == b.op_start && a.op_end == b.op_end && a.send_start == b.send_start &&
         a.send_end == b.send_end && are_equal(a.in_place, b.in_place);
}

std::vector<int64_t> flat(const std::vector<InPlace>& pairs) {
  std::vector<int64_t> rows;
  for (const InPlace& pair : pairs) rows.insert(rows.end(), {pair.op, pair.in, pair.out});
  return rows;
}

void judge_bounds(const DeviceProblem& problem, const DeviceFigures& figures) {
  expect(device_time_bound(problem) <= figures.time, "no schedule is faster than the bound");
  expect(device_peak_bound(problem) <= figures.most(), "no schedule has a peak below the bound");
}

void judge_schedule(const DeviceProblem& problem, int64_t tick, bool is_legal, Dice& dice) {
  const DeviceSchedule schedule = random_device_schedule(problem, dice);
  DeviceFigures fast, slow, judged;
  expect(is_well_formed(problem, schedule), "a random schedule is well-formed");
  const bool runs = simulate_devices(problem, schedule, fast);
  const ScheduleVerdict verdict = check_schedule(problem, schedule, flat(fast.in_place), judged);
  expect(runs ? verdict.fault == ScheduleFault::None : verdict.fault == ScheduleFault::Circle,
         "a legal schedule runs, or waits in a circle");
  if (is_legal) expect(slow_devices(problem, schedule, tick, slow) == runs, "circles are found");
  if (!runs) return;
  expect(are_equal(fast, judged), "the checker finds the same figures");
  expect(!is_legal || are_equal(fast, slow), "and so do the definitions");
  judge_bounds(problem, fast);
}

int32_t wild(int64_t most, Dice& dice) {
  return dice.one_in(4) ? dice.pick<int32_t>({-2, -1, 0, INT32_MIN, INT32_MAX, 1 << 20}) : dice.upto(most);
}

// Whatever the numbers, the checker stays inside its arrays; what it accepts can be run.
void judge_wild_schedule(const DeviceProblem& problem, Dice& dice) {
  DeviceSchedule schedule = random_device_schedule(problem, dice);
  for (int32_t i = dice.upto(2); i >= 0; --i) {
    std::vector<int32_t>* const columns[] = {&schedule.placement, &schedule.order, &schedule.home};
    std::vector<int32_t>& column = *columns[dice.upto(2)];
    const auto last = static_cast<int64_t>(column.size()) - 1;
    if (dice.one_in(3)) {
      const auto at = schedule.sends.begin() + dice.upto(static_cast<int64_t>(schedule.sends.size()));
      schedule.sends.insert(at, {wild(problem.n_tensors, dice), wild(problem.n_devices, dice), wild(problem.n_devices, dice)});
    } else if (dice.one_in(3) && !schedule.sends.empty()) {
      schedule.sends.erase(schedule.sends.begin() + dice.upto(static_cast<int64_t>(schedule.sends.size()) - 1));
    } else if (last >= 0 && dice.one_in(8)) {
      column.pop_back();
    } else if (last >= 0) {
      column[dice.upto(last)] = wild(problem.n_ops, dice);
    }
  }
  DeviceFigures fast, judged;
  std::vector<int64_t> rows;
  for (int32_t i = dice.upto(1); i > 0; --i) {
    if (!problem.in_place.empty() && !dice.one_in(3)) {
      const InPlace pair = dice.pick(problem.in_place);
      rows.insert(rows.end(), {pair.op, pair.in, pair.out});
    } else {
      rows.insert(rows.end(), {wild(problem.n_ops, dice), wild(problem.n_storages, dice), wild(problem.n_storages, dice)});
    }
  }
  const ScheduleVerdict verdict = check_schedule(problem, schedule, rows, judged);
  const bool can_run = is_well_formed(problem, schedule) && simulate_devices(problem, schedule, fast);
  if (verdict.fault != ScheduleFault::None) return;
  expect(can_run, "what the checker accepts can be run");
  expect(fast.time == judged.time && fast.op_start == judged.op_start, "and takes the same time");
  for (size_t d = 0; d < fast.peak.size(); ++d) {
    expect(fast.peak[d] <= judged.peak[d], "fewer pairs never lower a peak");
  }
}

}  // namespace

void judge_devices(Dice& dice) {
  DeviceRows rows = legal_device_rows(dice);
  const bool is_legal = !dice.one_in(4);
  if (!is_legal) spoil_devices(rows, dice);
  DeviceProblem problem;
  const DeviceVerdict verdict = build_device_problem(rows.view(), problem);
  expect(!is_legal || verdict.fault == DeviceFault::None, "legal rows are accepted");
  if (verdict.fault != DeviceFault::None) return;
  judge_schedule(problem, rows.tick, is_legal, dice);
  judge_wild_schedule(problem, dice);
  judge_heuristics(problem, dice);
  judge_annealing(problem, dice);
}

}  // namespace regal::fuzz
