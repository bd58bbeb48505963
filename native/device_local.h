#pragma once
#include <atomic>
#include <span>

#include "device_compact.h"
#include "device_genes.h"
#include "device_search.h"

namespace regal {

// How moves are drawn. The rest of `relocate + release + shift` draws new keys.
struct MoveMix {
  double critical = 0.5;   // chance that a move begins at an op that the schedule hinges on
  double region = 5;       // ops of a connected region: 1 plus this on average
  double relocate = 0.3;   // chance to pin the region to another device
  double release = 0.1;    // chance to leave the place of the region to the heuristic again
  double shift = 0.4;      // chance to move the region in the order, all ops by equal parts
  double reach = 0.3;      // by at most half of this share of all keys
};

struct DeviceLocalSettings {
  DeviceDecoder decoder = DeviceDecoder::Eft;
  Objective objective;
  bool is_annealing = false;  // else: never uphill
  MoveMix mix;
  uint64_t seed = 0;
  int32_t threads = 1;
  DeviceStop stop;
  std::span<const uint32_t> start;  // a chromosome of the decoder
};

// Improves a schedule by moves: an op, its colocation group or a connected region goes to another
// device, or earlier or later in the order. The decoder fits the rest of the schedule to it.
// Annealing starts cold, then runs in cycles, each twice as long as the one before: its path does not
// depend on when it is stopped. Evaluations: the start, then one per move tried.
// The result is the same for every number of threads: they look ahead along the path of rejections.
KeySearchResult run_device_local(const CompactDevices& problem, const DeviceLocalSettings& settings,
                                   const std::atomic<bool>& cancelled);

}  // namespace regal
