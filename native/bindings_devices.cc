#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <optional>
#include <utility>

#include "bindings_placements.h"
#include "device_bounds.h"
#include "device_check.h"
#include "device_problem.h"
#include "device_simulate.h"

using namespace nb::literals;
using regal::DeviceFault;
using regal::DeviceFigures;
using regal::DeviceProblem;
using regal::DeviceSchedule;
using regal::DeviceVerdict;
using regal::ScheduleFault;
using regal::ScheduleVerdict;
using Array = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;

namespace {

std::vector<int32_t> narrow(std::span<const int64_t> values) {
  std::vector<int32_t> result;
  result.reserve(values.size());
  for (const int64_t value : values) {
    if (value < INT32_MIN || value > INT32_MAX) throw nb::value_error("an index does not fit in 32 bits");
    result.push_back(static_cast<int32_t>(value));
  }
  return result;
}

Array wide(const std::vector<int32_t>& values) {
  return array_of(std::vector<int64_t>(values.begin(), values.end()));
}

// Indices are the caller's: a wrong one must not read outside.
void require_well_formed(const DeviceProblem& problem, const DeviceSchedule& schedule) {
  if (!is_well_formed(problem, schedule)) {
    throw nb::value_error("the schedule does not fit the problem: see require_valid_model_schedule");
  }
}

DeviceSchedule schedule_of(Ints placement, Ints order, Rows<3> sends, Ints home) {
  DeviceSchedule schedule;
  schedule.placement = narrow(span_of(placement));
  schedule.order = narrow(span_of(order));
  schedule.home = narrow(span_of(home));
  const std::vector<int32_t> flat = narrow(span_of(sends));
  for (size_t i = 0; i < flat.size(); i += 3) schedule.sends.push_back({flat[i], flat[i + 1], flat[i + 2]});
  return schedule;
}

Array flat_sends(const DeviceSchedule& schedule) {
  std::vector<int64_t> flat;
  flat.reserve(3 * schedule.sends.size());
  for (const regal::Send& send : schedule.sends) flat.insert(flat.end(), {send.tensor, send.source, send.target});
  return array_of(std::move(flat));
}

void bind_device_problem(nb::module_& module) {
  nb::enum_<DeviceFault>(module, "DeviceFault")
      .value("NONE", DeviceFault::None)
      .value("BAD_INDEX", DeviceFault::BadIndex)
      .value("NEGATIVE_SIZE", DeviceFault::NegativeSize)
      .value("BAD_TIME", DeviceFault::BadTime)
      .value("TOO_LARGE", DeviceFault::TooLarge)
      .value("CYCLE", DeviceFault::Cycle)
      .value("BAD_IN_PLACE", DeviceFault::BadInPlace)
      .value("NO_DEVICE", DeviceFault::NoDevice);
  nb::class_<DeviceVerdict>(module, "DeviceVerdict")
      .def_ro("fault", &DeviceVerdict::fault)
      .def_ro("guilty", &DeviceVerdict::guilty);
  nb::class_<DeviceProblem>(module, "DeviceProblem",
                            "Several devices, one graph: which device runs each op, and when?")
      .def_ro("n_ops", &DeviceProblem::n_ops)
      .def_ro("n_devices", &DeviceProblem::n_devices)
      .def_ro("n_tensors", &DeviceProblem::n_tensors)
      .def_ro("n_storages", &DeviceProblem::n_storages)
      .def_ro("n_groups", &DeviceProblem::n_groups)
      .def_ro("n_residents", &DeviceProblem::n_residents)
      .def_prop_ro("group", [](const DeviceProblem& p) { return wide(p.group); }, nb::rv_policy::move,
                   "Op -> its colocation group, numbered by first ops.")
      .def_prop_ro("device_class", [](const DeviceProblem& p) { return wide(p.device_class); },
                   nb::rv_policy::move, "Equal: nothing changes when the two devices are exchanged.")
      .def_prop_ro("may_run", [](const DeviceProblem& p) {
        return array_of(std::vector<int64_t>(p.may_run.begin(), p.may_run.end()));
      }, nb::rv_policy::move, "Flat (group, device) table of 0 and 1.");
  module.def(
      "build_device_problem",
      [](Table durations, Ints workspace, Ints groups, Rows<2> reads, Ints producers, Ints tensor_storages,
         Ints outputs, Rows<2> controls, Ints bytes, Rows<3> in_place, Ints resident_bytes,
         Rows<2> resident_users, Ints capacity, Table link_classes, Table transfers, Table latency,
         bool has_contention, bool capacity_counts_live) {
        const regal::DeviceInput input{static_cast<int64_t>(durations.shape(1)),
                                       span_of(durations), span_of(workspace), span_of(groups), span_of(reads),
                                       span_of(producers), span_of(tensor_storages), span_of(outputs),
                                       span_of(controls), span_of(bytes), span_of(in_place),
                                       span_of(resident_bytes), span_of(resident_users), span_of(capacity),
                                       span_of(link_classes), span_of(transfers), span_of(latency),
                                       has_contention, capacity_counts_live};
        DeviceProblem problem;
        DeviceVerdict verdict;
        {
          nb::gil_scoped_release unlocked;
          verdict = regal::build_device_problem(input, problem);
        }
        return std::make_pair(verdict, std::move(problem));
      },
      "durations"_a, "workspace"_a, "groups"_a, "reads"_a, "producers"_a, "tensor_storages"_a, "outputs"_a,
      "controls"_a, "bytes"_a, "in_place"_a, "resident_bytes"_a, "resident_users"_a, "capacity"_a,
      "link_classes"_a, "transfers"_a, "latency"_a, "has_contention"_a = true, "capacity_counts_live"_a = true,
      "Builds a problem from int64 arrays; their meaning is that of native/device_problem.h.");
}

void bind_device_schedule(nb::module_& module) {
  nb::class_<DeviceSchedule>(module, "DeviceSchedule", "Placement, order, sends, homes: the decisions.")
      .def("__init__",
           [](DeviceSchedule* self, Ints placement, Ints order, Rows<3> sends, Ints home) {
             new (self) DeviceSchedule(schedule_of(placement, order, sends, home));
           },
           "placement"_a, "order"_a, "sends"_a, "home"_a,
           "From int64 arrays: op -> device; all ops; (k, 3) tensor, source, target; tensor -> device or -1.")
      .def_prop_ro("placement", [](const DeviceSchedule& s) { return wide(s.placement); }, nb::rv_policy::move)
      .def_prop_ro("order", [](const DeviceSchedule& s) { return wide(s.order); }, nb::rv_policy::move)
      .def_prop_ro("home", [](const DeviceSchedule& s) { return wide(s.home); }, nb::rv_policy::move)
      .def_prop_ro("sends", flat_sends, nb::rv_policy::move, "Flat (tensor, source, target) rows.");

  const auto longs = [](auto member) {
    return [member](const DeviceFigures& f) { return array_of(f.*member); };
  };
  nb::class_<DeviceFigures>(module, "DeviceFigures", "What the simulation says of a schedule; ns and bytes.")
      .def_ro("time", &DeviceFigures::time)
      .def_ro("overflow", &DeviceFigures::overflow)
      .def_prop_ro("most", &DeviceFigures::most, "The largest peak of a device.")
      .def_prop_ro("peak", longs(&DeviceFigures::peak), nb::rv_policy::move)
      .def_prop_ro("resident", longs(&DeviceFigures::resident), nb::rv_policy::move)
      .def_prop_ro("op_start", longs(&DeviceFigures::op_start), nb::rv_policy::move)
      .def_prop_ro("op_end", longs(&DeviceFigures::op_end), nb::rv_policy::move)
      .def_prop_ro("send_start", longs(&DeviceFigures::send_start), nb::rv_policy::move)
      .def_prop_ro("send_end", longs(&DeviceFigures::send_end), nb::rv_policy::move)
      .def_prop_ro("in_place", [](const DeviceFigures& f) {
        std::vector<int64_t> flat;
        for (const auto& pair : f.in_place) flat.insert(flat.end(), {pair.op, pair.in, pair.out});
        return array_of(std::move(flat));
      }, nb::rv_policy::move, "Flat (op, in storage, out storage) rows of the pairs that happened.");
  module.def(
      "simulate_devices",
      [](const DeviceProblem& problem, const DeviceSchedule& schedule) -> std::optional<DeviceFigures> {
        require_well_formed(problem, schedule);
        nb::gil_scoped_release unlocked;
        DeviceFigures figures;
        if (!regal::simulate_devices(problem, schedule, figures)) return std::nullopt;
        return figures;
      },
      "problem"_a, "schedule"_a,
      "Runs a complete schedule; None: its orders wait for each other in a circle, or a send is missing.");
  module.def(
      "complete_schedule",
      [](const DeviceProblem& problem, Ints placement, Ints order) {
        DeviceSchedule schedule;
        schedule.placement = narrow(span_of(placement));
        schedule.order = narrow(span_of(order));
        for (const int32_t op : problem.producer) schedule.home.push_back(op < 0 ? 0 : -1);
        require_well_formed(problem, schedule);
        nb::gil_scoped_release unlocked;
        regal::complete_schedule(problem, schedule);
        return schedule;
      },
      "problem"_a, "placement"_a, "order"_a,
      "Adds homes and sends to a placement and an order that runs every op after those it depends on.");
}

void bind_device_score(nb::module_& module) {
  nb::class_<regal::Score>(module, "DeviceScore", "What a search minimizes: overflow, value, time, peak.")
      .def_ro("overflow", &regal::Score::overflow)
      .def_ro("value", &regal::Score::value)
      .def_ro("time", &regal::Score::time)
      .def_ro("peak", &regal::Score::peak)
      .def("is_better_than", &regal::Score::is_better_than, "other"_a);
  module.def(
      "score_devices",
      [](const DeviceFigures& figures, double per_ns, double per_byte) {
        return regal::score_of(figures, {per_ns, per_byte});
      },
      "figures"_a, "per_ns"_a, "per_byte"_a, "The score of figures with these weights.");
}

void bind_schedule_check(nb::module_& module) {
  nb::enum_<ScheduleFault>(module, "ScheduleFault")
      .value("NONE", ScheduleFault::None)
      .value("BAD_PLACEMENT", ScheduleFault::BadPlacement)
      .value("NOT_COLOCATED", ScheduleFault::NotColocated)
      .value("NOT_A_PERMUTATION", ScheduleFault::NotAPermutation)
      .value("READER_TOO_EARLY", ScheduleFault::ReaderTooEarly)
      .value("SEND_MISSING", ScheduleFault::SendMissing)
      .value("SEND_TWICE", ScheduleFault::SendTwice)
      .value("SEND_USELESS", ScheduleFault::SendUseless)
      .value("BAD_HOME", ScheduleFault::BadHome)
      .value("CIRCLE", ScheduleFault::Circle)
      .value("IN_PLACE_NOT_ALLOWED", ScheduleFault::InPlaceNotAllowed)
      .value("IN_PLACE_NOT_LAST", ScheduleFault::InPlaceNotLast)
      .value("IN_PLACE_TWICE", ScheduleFault::InPlaceTwice);
  nb::class_<ScheduleVerdict>(module, "ScheduleVerdict")
      .def_ro("fault", &ScheduleVerdict::fault)
      .def_ro("first", &ScheduleVerdict::first)
      .def_ro("second", &ScheduleVerdict::second);
  module.def(
      "check_schedule",
      [](const DeviceProblem& problem, const DeviceSchedule& schedule, Rows<3> in_place) {
        nb::gil_scoped_release unlocked;
        DeviceFigures figures;
        const ScheduleVerdict verdict = regal::check_schedule(problem, schedule, span_of(in_place), figures);
        return std::make_pair(verdict, std::move(figures));
      },
      "problem"_a, "schedule"_a, "in_place"_a,
      "Judges a schedule and its in-place rows (op, in storage, out storage); recomputes all figures.");
}

void bind_device_bounds(nb::module_& module) {
  nb::call_guard<nb::gil_scoped_release> unlocked;
  module.def("device_time_bound", &regal::device_time_bound, "problem"_a, unlocked,
             "No schedule is faster, in ns: proven.");
  module.def("device_peak_bound", &regal::device_peak_bound, "problem"_a, unlocked,
             "No schedule has a lower peak on its fullest device, in bytes: proven.");
  module.def("one_device_relaxation", &regal::one_device_relaxation, "problem"_a, unlocked,
             "The one-device problem whose least peak, divided by the number of devices, is a bound.");
}

}  // namespace

void bind_devices(nb::module_& module) {
  bind_device_problem(module);
  bind_device_schedule(module);
  bind_device_score(module);
  bind_schedule_check(module);
  bind_device_bounds(module);
}
