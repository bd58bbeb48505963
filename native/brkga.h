#pragma once
#include <atomic>
#include <cstdint>
#include <span>

#include "compact.h"
#include "decode.h"
#include "genetic.h"
#include "search.h"

namespace regal {

// A chromosome has one key per op and a last gene: how strongly the keys bend (see Decoder).
struct BrkgaSettings {
  Decoder decoder = Decoder::Forced;
  GeneticSettings genetic;               // the proposal has n + 1 values, or none
  bool with_neutral = true;              // start with the plain heuristic
  StopRule stop;
  std::span<const int32_t> seed_orders;  // legal orders, n each, one after the other
};

// Random keys (see genetic.h) over a decoder for one device.
// Evaluations: the seed orders as they are, then the first population (neutral keys, seed orders
// as keys, random ones), then the offspring, generation by generation.
// The result is the same for every number of threads. At least one evaluation is done.
SearchResult run_brkga(const CompactProblem& problem, const BrkgaSettings& settings,
                       const std::atomic<bool>& cancelled);

}  // namespace regal
