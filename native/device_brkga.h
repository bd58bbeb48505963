#pragma once
#include <atomic>
#include <span>
#include <vector>

#include "device_compact.h"
#include "device_genes.h"
#include "device_search.h"
#include "genetic.h"

namespace regal {

struct DeviceBrkgaSettings {
  DeviceDecoder decoder = DeviceDecoder::Eft;
  Objective objective;
  GeneticSettings genetic;     // the proposal has GeneLayout::size values, or none
  bool with_neutral = true;    // start with the plain heuristic
  bool relabels_devices = true;  // equal devices are numbered by first use before plans are crossed
  DeviceStop stop;
  std::vector<const DeviceSchedule*> seeds;  // complete ones to start from
  std::span<const uint32_t> chromosomes;  // to start from too, GeneLayout::size genes each
};

// Random keys (see genetic.h) over a decoder for several devices.
// Evaluations: the seeds as they are, then the first population (neutral keys, chromosomes,
// seeds as keys, random ones), then the offspring, generation by generation.
// The result is the same for every number of threads. At least one evaluation is done.
KeySearchResult run_device_brkga(const CompactDevices& problem, const DeviceBrkgaSettings& settings,
                                 const std::atomic<bool>& cancelled);

}  // namespace regal
