#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bindings_placements.h"
#include "device_heuristics.h"
#include "device_heuristics_groups.h"

using namespace nb::literals;
using regal::DeviceProblem;
using regal::DeviceRule;
using regal::NamedSchedule;
using regal::Objective;
using regal::PlacementOrder;

namespace {

// Indices are the caller's: a wrong one must not be used.
std::vector<int32_t> checked(Ints values, int32_t n, int32_t low, int32_t high, const char* name) {
  if (values.size() != static_cast<size_t>(n)) throw nb::value_error(name);
  std::vector<int32_t> result;
  for (const int64_t value : span_of(values)) {
    if (value < low || value >= high) throw nb::value_error(name);
    result.push_back(static_cast<int32_t>(value));
  }
  return result;
}

void bind_rules(nb::module_& module) {
  nb::enum_<DeviceRule>(module, "DeviceRule", "Schedules that need no search; see device_heuristics.h.")
      .value("SINGLE_DEVICE", DeviceRule::SingleDevice)
      .value("ROUND_ROBIN", DeviceRule::RoundRobin)
      .value("FILE_ORDER", DeviceRule::FileOrder)
      .value("DFS", DeviceRule::Dfs)
      .value("BFS", DeviceRule::Bfs)
      .value("M_TOPO", DeviceRule::MTopo)
      .value("M_ETF", DeviceRule::MEtf)
      .value("ETF", DeviceRule::Etf)
      .value("SCT", DeviceRule::Sct)
      .value("HEFT", DeviceRule::Heft)
      .value("CPOP", DeviceRule::Cpop)
      .value("PEFT", DeviceRule::Peft)
      .value("GREEDY_MEMORY", DeviceRule::GreedyMemory);
  nb::enum_<PlacementOrder>(module, "PlacementOrder", "In which order the ops of a placement run.")
      .value("FILE", PlacementOrder::File)
      .value("DFS", PlacementOrder::Dfs)
      .value("LEVELS", PlacementOrder::Levels)
      .value("LEAST_MEMORY", PlacementOrder::LeastMemory)
      .value("SAFE_MEMORY", PlacementOrder::SafeMemory)
      .value("LIST", PlacementOrder::List);
  nb::class_<NamedSchedule>(module, "NamedSchedule")
      .def_ro("name", &NamedSchedule::name, "The rule and its variant.")
      .def_ro("schedule", &NamedSchedule::schedule)
      .def_ro("score", &NamedSchedule::score);
}

}  // namespace

void bind_device_heuristics(nb::module_& module) {
  bind_rules(module);
  module.def(
      "heuristic_schedules",
      [](const DeviceProblem& problem, double per_ns, double per_byte, std::vector<DeviceRule> rules) {
        nb::gil_scoped_release unlocked;
        int64_t evaluations = 0;
        if (rules.empty()) rules.assign(std::begin(regal::kDeviceRules), std::end(regal::kDeviceRules));
        std::vector<NamedSchedule> found =
            regal::heuristic_schedules(problem, rules, Objective{per_ns, per_byte}, evaluations);
        return std::make_pair(std::move(found), evaluations);
      },
      "problem"_a, "per_ns"_a, "per_byte"_a, "rules"_a = std::vector<DeviceRule>{},
      "Returns (schedules of the rules, best first and without repeats; how many were simulated).\n"
      "No rules: all of them.");
  module.def(
      "favorite_schedule",
      [](const DeviceProblem& problem, Ints favorites, bool puts_together, double per_ns, double per_byte) {
        const std::vector<int32_t> children =
            checked(favorites, problem.n_ops, -1, problem.n_ops, "favorites: one op or -1 per op");
        nb::gil_scoped_release unlocked;
        return regal::favorite_schedule(problem, children, puts_together, Objective{per_ns, per_byte});
      },
      "problem"_a, "favorites"_a, "puts_together"_a, "per_ns"_a, "per_byte"_a,
      "SCT: ETF in which a device waits for the favorite child of its last op (-1: none).");
  module.def(
      "placed_schedules",
      [](const DeviceProblem& problem, Table placements, PlacementOrder order, bool fits, double per_ns,
         double per_byte, int threads) {
        const std::vector<std::vector<int32_t>> rows = placements_of(problem, placements, fits);
        nb::gil_scoped_release unlocked;
        return regal::placed_schedules(problem, rows, order, fits, Objective{per_ns, per_byte}, threads);
      },
      "problem"_a, "placements"_a, "order"_a, "fits"_a, "per_ns"_a, "per_byte"_a, "threads"_a = 1,
      "Returns the complete schedule of each placement, a row of one device per op. With `fits` an op\n"
      "moves where its group is, or where it may run, or where there is room.");
  module.def(
      "random_schedule",
      [](const DeviceProblem& problem, double per_ns, double per_byte, uint64_t seed, int64_t first,
         int64_t count, int threads) {
        if (count < 1) throw nb::value_error("count: at least 1");
        nb::gil_scoped_release unlocked;
        return regal::random_schedule(problem, Objective{per_ns, per_byte}, seed, first, count, threads);
      },
      "problem"_a, "per_ns"_a, "per_byte"_a, "seed"_a, "first"_a, "count"_a, "threads"_a,
      "Returns the best of `count` random schedules, from number `first` of this seed on.");
  module.def(
      "groups_put_together",
      [](const DeviceProblem& problem) {
        const DeviceProblem together = regal::put_together(problem);
        return array_of(std::vector<int64_t>(together.group.begin(), together.group.end()));
      },
      "problem"_a, nb::rv_policy::move,
      "Op -> group, where ops whose outputs one other op alone reads joined its group.");
}
