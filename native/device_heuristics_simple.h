#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_heuristics_tables.h"

namespace regal {

// Placements without a schedule. Each is legal; capacities are kept as far as MemoryLedger sees
// them, except by single_device.

// Baechi's m-TOPO: groups in the sequence of `order` fill one device after another. `is_uniform`:
// up to an equal share of all bytes plus the largest group; else up to the capacity.
std::vector<int32_t> topological_fill(const DeviceTables& tables, std::span<const int32_t> order,
                                      bool is_uniform);

// Groups in turn over the devices that may run them and are not full.
std::vector<int32_t> round_robin(const DeviceTables& tables);

// Ops on the devices that they wish, unless their group is elsewhere, or may not run there, or the
// device is full while another is not.
std::vector<int32_t> fit_placement(const DeviceTables& tables, std::span<const int32_t> wished);

// Everything on one device; groups that it may not run go where they are fastest.
std::vector<int32_t> single_device(const DeviceTables& tables, int32_t device);

// Ops in the sequence of `order`, each where the largest peak of all devices grows least; of equal
// ones where the fewest bytes are copied, then where the device's own peak is lower.
std::vector<int32_t> least_growth(const DeviceTables& tables, std::span<const int32_t> order);

// Ops in the sequence of `order`, each where the fewest bytes are copied: it follows its inputs.
// Where that device's peak would pass `most_bytes` it goes where the peak stays lowest.
std::vector<int32_t> follow_inputs(const DeviceTables& tables, std::span<const int32_t> order,
                                   int64_t most_bytes);

// Bounds for follow_inputs: no op takes less than `low`, one device takes `high`, and `least` is
// the lowest bound found by bisection that follow_inputs keeps, as far as the ledger sees.
struct FollowBounds {
  int64_t low;
  int64_t high;
  int64_t least;
};
FollowBounds follow_bounds(const DeviceTables& tables, std::span<const int32_t> order);

}  // namespace regal
