#pragma once
#include <cstdint>

#include "device_problem.h"
#include "problem.h"

namespace regal {

// No schedule is faster: the longest chain with its transfers, each op where the chain is shortest;
// the work of all ops, shared out by the best prices of the devices; the work between a head and a
// tail that every schedule has; the work of one colocation group.
// Cost: O(reads * devices^2 + ops log).
int64_t device_time_bound(const DeviceProblem& problem);

// No schedule has a lower peak on its fullest device: what one op needs around it, or an equal share
// of what all devices together hold, for which the peak of one device is a bound (see below).
// Cost: that of peak_bound.
int64_t device_peak_bound(const DeviceProblem& problem);

// The one-device problem whose least peak, divided by the number of devices, is a bound for theirs.
//
// Take any schedule and sort its ops by their ends: a legal order of one device. In the last tick of
// op v every op up to v has started and none after it has ended, so each storage that is live during
// v's step in the order has an instance on some device: the one of a reader that is yet to end, or
// of its source until the transfer ends. So all devices together hold at least what one would.
// That holds for storages whose tensors hang together: each but the roots is made by an op that
// reads another, and the roots are made at once. Others are left out. An op that writes in place
// saves on its device what it would save in the order; where it would save nothing there, because
// another op still reads the input, that reader has a copy of its own.
OrderProblem one_device_relaxation(const DeviceProblem& problem);

}  // namespace regal
