#pragma once
#include <atomic>
#include <cstdint>
#include <span>

#include "device_compact.h"
#include "device_search.h"
#include "device_simulate.h"

namespace regal {

struct AnnealSettings {
  Objective objective;
  uint64_t seed = 0;
  int threads = 1;
  int32_t chains = 2;  // independent of the threads, so that these never change the result
  DeviceStop stop;
  // To start from: placements and topological orders, n values each, one after the other.
  std::span<const int32_t> placements;
  std::span<const int32_t> orders;
};

// Simulated annealing of placements: parts of a device move together (device_neighbors.h). For time
// they run under list scheduling (device_list.h), where lengthened ways reorder branches; for memory
// in a sequence of which blocks shift (device_shift.h); for both, chains of both kinds take turns.
// Each chain cools down in cycles, each longer than the one before and from the best so far, so that
// how long the run will last need not be known.
// Evaluations: what it starts from, then the chains in turn. The result is the same for every number
// of threads. At least one evaluation is done.
DeviceSearchResult anneal_devices(const CompactDevices& problem, const AnnealSettings& settings,
                                  const std::atomic<bool>& cancelled);

}  // namespace regal
