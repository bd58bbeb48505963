#pragma once
#include <atomic>
#include <cstdint>

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
  Seeds seeds;
};

// Simulated annealing of placements under list scheduling (see device_list.h): parts of a device
// move together (device_neighbors.h), and lengthened ways reorder branches. Each chain cools down
// in cycles, each twice as long as the one before and from the best so far, so that how long the
// run will last need not be known.
// Evaluations: the seeds, then the chains in turn. The result is the same for every number of
// threads. At least one evaluation is done.
DeviceSearchResult anneal_devices(const CompactDevices& problem, const AnnealSettings& settings,
                                  const std::atomic<bool>& cancelled);

}  // namespace regal
