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

// `first` is the guilty one, `second` its partner, else -1:
//   BadPlacement op, device; NotColocated op, op; NotAPermutation op; ReaderTooEarly op, earlier op;
//   SendMissing tensor, reader; SendTwice send, send; SendUseless send (no such tensor, not from where
//   it was made, or nothing on the target reads it); BadHome tensor, device; Circle an op on it;
//   InPlace*: row, and for Twice the other row, for NotLast the op that gets in the way (-1: a send).
struct ScheduleVerdict {
  ScheduleFault fault = ScheduleFault::None;
  int64_t first = -1;
  int64_t second = -1;
};

// Judges a schedule with its in-place rows (op, in storage, out storage; fewer than possible is fine)
// and recomputes all its figures from the definitions; any numbers are safe. `order` must be
// topological as a whole. Shares no code with simulate_devices or with any decoder: times depth
// first over explicit waits, memory by painting intervals.
// Cost: O((ops + reads + sends) log), and per in-place row what touches its two storages.
ScheduleVerdict check_schedule(const DeviceProblem& problem, const DeviceSchedule& schedule,
                               std::span<const int64_t> in_place, DeviceFigures& figures);

}  // namespace regal
