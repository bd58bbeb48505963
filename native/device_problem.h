#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "problem.h"

namespace regal {

inline constexpr int64_t kForbidden = -1;  // the device cannot run the op
inline constexpr int64_t kUnlimited = INT64_MAX;

// Several devices, one graph: which device runs each op, in which order do ops and transfers run?
//
// A device runs one op at a time, in its order; an op starts when its device is free and all its
// inputs are there. A tensor goes at most once to each other device that reads it, from where it
// was made (a graph input: from its home, where it lies at time 0). A link between two devices
// carries one tensor at a time, in its order. A control edge between devices takes the latency.
// Everything takes at least 1 ns, so that memory intervals [start, end) never vanish.
//
// Memory is counted per storage and device. The instance lives from the first start of a local
// writer or incoming transfer (home of an input: from 0) to the last end of a local toucher or
// transfer; an output stays to the end where it was made. Workspace lives during its op.
//
// Corners. A tensor that nothing reads takes its memory during its op, or to the end if it is an
// output. A graph input that nothing reads has home 0: it takes memory there only if it is an output
// or another tensor of its storage is used there. Tensors of one storage may be made on several
// devices: each device has one instance, over the hull of what touches it there; only the one where
// an output was made stays to the end. Tensors without counted storage take their time on links.
struct DeviceProblem {
  int32_t n_ops = 0;
  int32_t n_devices = 0;
  int32_t n_tensors = 0;   // what can be sent: outputs of ops and graph inputs, no parameters
  int32_t n_storages = 0;
  int32_t n_groups = 0;
  int32_t n_residents = 0;

  // Ops.
  Csr predecessors;                   // op -> ops that must run earlier: data and control
  Csr successors;                     // the inverse
  Csr control;                        // op -> the predecessors that a control edge names
  Csr reads;                          // op -> tensors
  Csr writes;                         // op -> tensors
  std::vector<int64_t> duration;      // [op * n_devices + device], >= 1 or kForbidden
  std::vector<int64_t> workspace;     // per op
  std::vector<int32_t> group;         // op -> its colocation group; every op has one
  Csr members;                        // group -> ops; all run on one device
  std::vector<uint8_t> may_run;       // [group * n_devices + device]

  // Tensors.
  std::vector<int32_t> producer;      // op, or -1: graph input
  Csr readers;                        // tensor -> ops
  std::vector<int32_t> storage;       // tensor -> storage, or -1: takes no counted memory
  std::vector<uint8_t> is_output;     // tensor: stays to the end
  int32_t n_link_classes = 0;         // links that take equal times for all tensors
  std::vector<int32_t> link_class;    // [source * n_devices + target]; -1 on the diagonal
  std::vector<int64_t> transfer;      // [class * n_tensors + tensor] ns, >= 1

  // Storages, parameters, devices.
  std::vector<int64_t> bytes;         // per storage, > 0
  Csr tensors_of;                     // storage -> tensors
  std::vector<InPlace> in_place;      // as in OrderProblem: sorted by op
  std::vector<int64_t> in_place_of;   // op -> its range in in_place
  std::vector<int64_t> resident_bytes;  // parameters and state: counted once per device of a user
  Csr residents;                      // op -> residents
  Csr resident_users;                 // the inverse
  std::vector<int64_t> capacity;      // per device, or kUnlimited
  std::vector<int64_t> latency;       // [source * n_devices + target] ns of a control edge; 0 on the diagonal
  std::vector<int32_t> device_class;  // equal: nothing changes when they are exchanged
  bool has_contention = true;
  bool capacity_counts_live = true;   // false: only residents count against the capacity

  int64_t duration_of(int32_t op, int32_t device) const {
    return duration[static_cast<int64_t>(op) * n_devices + device];
  }
  bool may_run_on(int32_t op, int32_t device) const {
    return may_run[static_cast<int64_t>(group[op]) * n_devices + device] != 0;
  }
  int64_t transfer_of(int32_t tensor, int32_t source, int32_t target) const {
    const int64_t link = link_class[static_cast<int64_t>(source) * n_devices + target];
    return transfer[link * n_tensors + tensor];
  }
};

enum class DeviceFault {
  None, BadIndex, NegativeSize, BadTime, TooLarge, Cycle, BadInPlace, NoDevice
};

// `guilty` is the op (Cycle: one on a cycle; BadTime: or tensor), group (NoDevice: no device may run
// all its ops; groups are numbered by their first ops), or row; -1: the arrays do not fit together.
struct DeviceVerdict {
  DeviceFault fault = DeviceFault::None;
  int64_t guilty = -1;
};

// What the caller knows, as flat rows.
struct DeviceInput {
  int64_t n_devices = 0;
  std::span<const int64_t> durations;       // (n, n_devices)
  std::span<const int64_t> workspace;       // (n,)
  std::span<const int64_t> groups;          // (n,): any numbers; equal = colocated; -1 = alone
  std::span<const int64_t> reads;           // (k, 2): op, tensor
  std::span<const int64_t> producers;       // (t,): op or -1
  std::span<const int64_t> tensor_storages; // (t,): storage or -1
  std::span<const int64_t> outputs;         // tensors
  std::span<const int64_t> controls;        // (c, 2): earlier op, later op
  std::span<const int64_t> bytes;           // (s,)
  std::span<const int64_t> in_place;        // (p, 3): op, in storage, out storage
  std::span<const int64_t> resident_bytes;  // (r,)
  std::span<const int64_t> resident_users;  // (u, 2): op, resident
  std::span<const int64_t> capacity;        // (n_devices,), or kUnlimited
  std::span<const int64_t> link_classes;    // (n_devices, n_devices), -1 on the diagonal
  std::span<const int64_t> transfers;       // (classes, t)
  std::span<const int64_t> latency;         // (n_devices, n_devices)
  bool has_contention = true;
  bool capacity_counts_live = true;
};

// Fills `problem`. All sums of times and of sizes are bounded here once. Cost: O(input log).
DeviceVerdict build_device_problem(const DeviceInput& input, DeviceProblem& problem);

}  // namespace regal
