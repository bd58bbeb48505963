#include <nanobind/stl/tuple.h>

#include <tuple>

#include "bindings_interrupt.h"
#include "bindings_placements.h"
#include "device_anneal.h"

using namespace nb::literals;
using regal::CompactDevices;
using regal::DeviceProblem;
using regal::DeviceSchedule;
using regal::DeviceSearchResult;
using regal::Score;

namespace {

// The sequences in which the ops may run.
std::vector<int32_t> topological(const DeviceProblem& problem, Table rows) {
  if (rows.shape(1) != static_cast<size_t>(problem.n_ops)) throw nb::value_error("orders: all ops");
  std::vector<int32_t> flat;
  for (size_t row = 0; row < rows.shape(0); ++row) {
    std::vector<uint8_t> is_listed(problem.n_ops, 0);
    for (int32_t i = 0; i < problem.n_ops; ++i) {
      const int64_t op = rows(row, i);
      if (op < 0 || op >= problem.n_ops || is_listed[op]) throw nb::value_error("orders: each op once");
      for (const int32_t earlier : problem.predecessors[op]) {
        if (!is_listed[earlier]) throw nb::value_error("orders: an op before one that it depends on");
      }
      is_listed[op] = 1;
      flat.push_back(static_cast<int32_t>(op));
    }
  }
  return flat;
}

}  // namespace

void bind_device_anneal(nb::module_& module) {
  module.def(
      "anneal_devices",
      [](const DeviceProblem& problem, double per_ns, double per_byte, Table placements, Table orders,
         uint64_t seed, int threads, int64_t evaluations, double seconds, double value,
         Cancel& cancel) -> std::tuple<DeviceSchedule, Score, int64_t, bool> {
        if (placements.shape(0) != orders.shape(0)) throw nb::value_error("as many orders as placements");
        std::vector<int32_t> starts;
        for (const std::vector<int32_t>& row : placements_of(problem, placements, false)) {
          starts.insert(starts.end(), row.begin(), row.end());
        }
        const std::vector<int32_t> sequences = topological(problem, orders);
        regal::AnnealSettings settings;
        settings.objective = {per_ns, per_byte};
        settings.seed = seed;
        settings.threads = threads;
        settings.stop = {evaluations, seconds, value};
        settings.placements = starts;
        settings.orders = sequences;
        auto [result, was_interrupted] = run_interruptible<DeviceSearchResult>(
            cancel, [&](const std::atomic<bool>& cancelled) {
              const CompactDevices compact(problem);
              return regal::anneal_devices(compact, settings, cancelled);
            });
        return {std::move(result.schedule), result.score, result.evaluations, was_interrupted};
      },
      "problem"_a, "per_ns"_a, "per_byte"_a, "placements"_a, "orders"_a, "seed"_a, "threads"_a,
      "evaluations"_a, "seconds"_a, "value"_a, "cancel"_a,
      "Anneals placements under list scheduling, from the best of (k, n_ops) placements and orders; see\n"
      "native/device_anneal.h. Returns schedule, score, evaluations, and whether Ctrl-C ended it.");
}
