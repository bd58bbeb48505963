#pragma once
#include <cstdint>
#include <vector>

#include "fusion_layout.h"
#include "fusion_problem.h"

namespace regal {

// The producers in the sequence in which a greedy search merges them: always the pair whose merge
// saves most time, as groups stand then (XLA's priority fusion estimates anew after each step).
// Producers that it merges with nobody are left out.
// Cost: O(pairs log) merges tried; each prices the ops of two groups.
std::vector<int32_t> merging_sequence(const FusionProblem& problem, const Layouts& layouts);

}  // namespace regal
