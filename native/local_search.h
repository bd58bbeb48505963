#pragma once
#include <atomic>
#include <cstdint>
#include <span>

#include "compact.h"
#include "search.h"

namespace regal {

struct LocalSearchSettings {
  bool is_annealing = false;         // else: never uphill, but a kick where it is stuck
  uint64_t seed = 0;
  StopRule stop;
  std::span<const int32_t> start;    // a legal order
};

// Improves an order by moves of blocks of steps, half of them near the peak. Equal peaks are
// compared by the sum of bytes over all steps. Annealing starts
// cold, then runs in cycles, each twice as long as the one before: its path does not depend on when
// it is stopped.
// Evaluations: the start, then one per move tried. One thread.
SearchResult run_local_search(const CompactProblem& problem, const LocalSearchSettings& settings,
                              const std::atomic<bool>& cancelled);

}  // namespace regal
