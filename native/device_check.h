#pragma once
#include <cstdint>
#include <span>

#include "device_problem.h"
#include "device_simulate.h"

namespace regal {

enum class ScheduleFault {
  None, BadPlacement, NotColocated, NotAPermutation, ReaderTooEarly, SendMissing, SendTwice,
  SendUseless, BadHome, Circle, InPlaceNotAllowed, InPlaceNotLast, InPlaceTwice
};

// `first` is the guilty op, tensor, send or in-place row; `second` its partner, else -1.
struct ScheduleVerdict {
  ScheduleFault fault = ScheduleFault::None;
  int64_t first = -1;
  int64_t second = -1;
};

// Judges a schedule with its in-place rows (op, in storage, out storage) and recomputes all its
// figures from the definitions. Shares no code with simulate_devices or with any decoder: times
// by relaxation over explicit constraints, memory by painting intervals.
ScheduleVerdict check_schedule(const DeviceProblem& problem, const DeviceSchedule& schedule,
                               std::span<const int64_t> in_place, DeviceFigures& figures);

}  // namespace regal
