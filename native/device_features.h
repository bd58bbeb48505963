#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_compact.h"

namespace regal {

// One column of the feature table, as it is before it is standardized.
struct FeatureInfo {
  const char* name;
  const char* unit;
  const char* meaning;
};

// All columns in order; the first is constant 1 and is not standardized.
std::span<const FeatureInfo> feature_infos();

// What is known of the ops of one graph, column by column: value of feature j of op v is
// columns[j * n + v]. Every column has mean 0 and standard deviation 1 over the ops (all 0 where it
// does not vary), outliers cut at 4, so that weights mean the same in every graph.
struct FeatureTable {
  int32_t n_ops = 0;
  std::vector<float> columns;
  const float* column(int32_t feature) const { return columns.data() + static_cast<int64_t>(feature) * n_ops; }
};

// Cost: O((ops + edges) * features).
FeatureTable device_features(const CompactDevices& problem);

}  // namespace regal
