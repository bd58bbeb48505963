#pragma once
#include <atomic>
#include <span>

#include "device_compact.h"
#include "device_genes.h"
#include "device_search.h"

namespace regal {

struct DeviceLocalSettings {
  DeviceDecoder decoder = DeviceDecoder::Eft;
  Objective objective;
  bool is_annealing = false;
  uint64_t seed = 0;
  DeviceStop stop;
  Genes start;  // a chromosome
};

struct DeviceLocalResult {
  DeviceSearchResult found;
  Genes genes;  // that decode to it
};

DeviceLocalResult run_device_local(const CompactDevices& problem, const DeviceLocalSettings& settings,
                                   const std::atomic<bool>& cancelled);

}  // namespace regal
