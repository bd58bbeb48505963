#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_problem.h"

namespace regal {

struct Send {
  int32_t tensor;
  int32_t source;
  int32_t target;
};

// The decisions. Every device runs its ops in the sequence of `order`, every link its sends.
struct DeviceSchedule {
  std::vector<int32_t> placement;  // op -> device
  std::vector<int32_t> order;      // all ops
  std::vector<Send> sends;
  // Tensor -> device for graph inputs, 0 for one that nothing reads; -1 for tensors of ops.
  std::vector<int32_t> home;
};

struct DeviceFigures {
  int64_t time = 0;                     // ns: end of the last op
  int64_t overflow = 0;                 // bytes above the capacities, summed over devices
  std::vector<int64_t> peak;            // per device, without residents
  std::vector<int64_t> resident;        // per device
  std::vector<int64_t> op_start;
  std::vector<int64_t> op_end;
  std::vector<int64_t> send_start;      // like DeviceSchedule::sends
  std::vector<int64_t> send_end;
  std::vector<InPlace> in_place;        // pairs that happened: always when possible, by op number
  int64_t most() const;                 // the largest peak of a device
};

// Whether all numbers of a schedule name something: sizes fit, the order is a permutation, ops are
// where they may run, homes are as above. What simulate_devices needs so that it never reads
// outside; the checker asks for more.
bool is_well_formed(const DeviceProblem& problem, const DeviceSchedule& schedule);

// Runs a well-formed schedule: everything starts as early as the orders allow. Returns false when
// the orders wait for each other in a circle, or when no send brings a tensor to its reader.
// The schedule must be complete (see complete_schedule).
//
// In place on a device: pair (op, in, out) happens where nothing else touches `in` or `out` on the
// device of `op` during it, nothing touches `in` there later (neither ops nor transfers, in or
// out), and nothing touched `out` there earlier. Copies on other devices do not matter: each can
// be written over by itself.
// Cost: O((ops + reads + sends) log), and per in-place pair what touches its two storages.
bool simulate_devices(const DeviceProblem& problem, const DeviceSchedule& schedule,
                      DeviceFigures& figures);

// Adds homes and sends to a placement and a topological order. A home is the device of the first
// reader in the order. When a link is free it sends, of the tensors that are ready, the one whose
// first reader on the target comes first in the order (equal: lower tensor). What ends at an instant
// is ready in it. Sends are listed by (start, source, target, tensor).
void complete_schedule(const DeviceProblem& problem, DeviceSchedule& schedule);

// What a search minimizes: overflow first, then weights, then time and peak as tie-breaks.
struct Objective {
  double per_ns = 1;    // of the running time
  double per_byte = 0;  // of the largest peak of a device
  double value(int64_t time, int64_t peak) const {
    return per_ns * static_cast<double>(time) + per_byte * static_cast<double>(peak);
  }
};

struct Score {
  int64_t overflow = INT64_MAX;
  double value = 0;
  int64_t time = 0;
  int64_t peak = 0;
  bool is_better_than(const Score& other) const {
    if (overflow != other.overflow) return overflow < other.overflow;
    if (value != other.value) return value < other.value;
    if (time != other.time) return time < other.time;
    return peak < other.peak;
  }
};

Score score_of(const DeviceFigures& figures, const Objective& objective);

}  // namespace regal
