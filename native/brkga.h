#pragma once
#include <atomic>
#include <cstdint>
#include <span>

#include "compact.h"
#include "decode.h"
#include "search.h"

namespace regal {

// A chromosome has one key per op and a last gene: how strongly the keys bend (see Decoder).
struct BrkgaSettings {
  Decoder decoder = Decoder::Forced;
  int32_t population = 100;
  int32_t elites = 20;           // >= 1, survive unchanged
  int32_t mutants = 15;          // new random chromosomes per generation
  double elite_bias = 0.7;       // chance that a gene comes from the elite parent
  int32_t restart_after = 0;     // generations without a better plan; 0 = never
  bool with_neutral = true;      // start with the plain heuristic
  uint64_t seed = 0;
  int32_t threads = 1;
  StopRule stop;
  std::span<const int32_t> seed_orders;  // legal orders, n each, one after the other
  // What a policy may set, per gene (n + 1 values, or none): the Beta distribution that random
  // chromosomes are drawn from, and the chance that the gene comes from the elite parent.
  std::span<const double> alpha;
  std::span<const double> beta;
  std::span<const double> gene_bias;
};

// Biased random-key genetic algorithm (Goncalves & Resende 2011) over the keys of a decoder.
// Evaluations: the seed orders as they are, then the first population (seed orders as keys,
// neutral keys, random ones), then the offspring, generation by generation.
// The result is the same for every number of threads. At least one evaluation is done.
SearchResult run_brkga(const CompactProblem& problem, const BrkgaSettings& settings,
                       const std::atomic<bool>& cancelled);

}  // namespace regal
