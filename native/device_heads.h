#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device_compact.h"
#include "device_features.h"
#include "device_genes.h"

namespace regal {

// Keys from features: key = 0.5 + 0.5 * tanh(features . weights / sqrt(features)), one vector of
// weights per head. All weights 0 give neutral keys: the plain heuristic.
//
// Weights: for the heads priority, affinity to device 0, 1, ..., colocation, wait, transfer: one per
// feature; then one per weight gene of GeneLayout, through the same curve.
// Extra columns, those of a network for example, are further features: their weights come behind
// those of the other features of each head. The curve and its scale stay as they are.
// The transfer key of a tensor is that of its producer; graph inputs stay neutral. The affinity of
// a group is that of the mean of its ops.
class FeatureKeys {
 public:
  // `extra`: ops * k values, column by column: of column j and op v at j * ops + v.
  FeatureKeys(const CompactDevices& problem, DeviceDecoder decoder, std::span<const float> extra = {});

  static int64_t n_heads(const DeviceProblem& problem) { return 4 + problem.n_devices; }
  static int64_t n_weights(const DeviceProblem& problem, int64_t n_extra = 0) {
    return n_heads(problem) * (static_cast<int64_t>(feature_infos().size()) + n_extra) + kGeneWeights;
  }
  // How far each weight is worth searching, relative to the others: 1; 2 for colocation and the
  // weight genes; 0 for the affinity to device 0, which the others are relative to, and for wait and
  // transfer, whose features tell too little. Within noise of other choices on the training graphs.
  static std::vector<double> usual_deviation(const DeviceProblem& problem, int64_t n_extra = 0);

  // Cost: O(heads with weights * features * ops). Many threads may call it.
  void fill(std::span<const double> weights, Genes& genes) const;

 private:
  enum Head : int32_t { kPriority, kAffinity };
  void fill_head(const FeatureTable& table, std::span<const double> weights, uint32_t* keys,
                 int64_t stride) const;

  const CompactDevices* problem_;
  GeneLayout layout_;
  int64_t n_features_;  // extra columns included
  FeatureTable of_ops_;
  FeatureTable of_groups_;  // empty where every op is a group of its own
};

}  // namespace regal
