#pragma once
#include <atomic>
#include <cstdint>
#include <span>

#include "device_search.h"
#include "fusion_decode.h"
#include "genetic.h"

namespace regal {

struct FusionSearchResult {
  Genes genes;  // a whole chromosome
  Score score;
  int64_t evaluations = 0;
};

// What both searches are told.
struct FusionTask {
  Objective objective;
  int64_t capacity = kUnlimited;           // of the one device
  const FusionDevices* devices = nullptr;  // where there are several
  DeviceStop stop;
  // The genes that are searched, ascending; the others stay as in `base`, a whole chromosome.
  std::span<const int64_t> searched;
  std::span<const uint32_t> base;
};

struct FusionBrkgaSettings {
  GeneticSettings genetic;
  FusionTask task;
  std::span<const uint32_t> given;  // (k, genes): whole chromosomes to start from, after `base`
};

// BRKGA over the searched genes. Evaluations: the base, the given ones, then chromosomes.
FusionSearchResult run_fusion_brkga(const FusionProblem& problem, const FusionBrkgaSettings& settings,
                                    const std::atomic<bool>& cancelled);

// Never uphill from `base`: lays out a stretch of sensitive ops anew, switches the fusion of a
// producer, moves a kernel. One thread. Evaluations: the base, then one per move.
FusionSearchResult run_fusion_local(const FusionProblem& problem, const FusionTask& task, uint64_t seed,
                                    const std::atomic<bool>& cancelled);

}  // namespace regal
