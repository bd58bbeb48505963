#pragma once
#include <atomic>
#include <span>
#include <vector>

#include "device_compact.h"
#include "device_heads.h"
#include "device_search.h"

namespace regal {

struct DeviceEsSettings {
  DeviceDecoder decoder = DeviceDecoder::Eft;
  Objective objective;
  // Further features of ops, column by column; see FeatureKeys.
  std::span<const float> extra;
  // Of the distribution to start from, per weight of FeatureKeys. None: usual_deviation().
  std::span<const double> deviation;
  // Rows of weights that are evaluated first; the best of them becomes the mean. None: 0.
  std::span<const double> starts;
  double step = 0.5;           // all deviations times this, at first
  int32_t population = 0;      // 0: 4 + 3 ln(weights)
  uint64_t seed = 0;
  int32_t threads = 1;
  int32_t kept = 0;            // how many of the best chromosomes are returned
  DeviceStop stop;
};

struct DeviceEsResult {
  DeviceSearchResult found;
  std::vector<Genes> best_genes;   // best first, at most `kept`, no two of equal score
  std::vector<double> weights;     // of the best
  std::vector<double> mean;        // of the last generation
  double step = 0;
};

// Evolution strategy over the weights of FeatureKeys: cumulative step-size adaptation (Ostermeier,
// Gawelczyk & Hansen 1994) with mirrored pairs of samples.
// Evaluations: the starts, or without any the weights 0 (with Inherit, at nine levels), then generation by
// generation. The result is the same for every number of threads. At least one evaluation is done.
DeviceEsResult run_device_es(const CompactDevices& problem, const DeviceEsSettings& settings,
                             const std::atomic<bool>& cancelled);

// What each row of weights decodes to, without a search.
std::vector<Score> weight_scores(const CompactDevices& problem, DeviceDecoder decoder, const Objective& objective,
                                 std::span<const float> extra, std::span<const double> rows, int32_t threads);

}  // namespace regal
