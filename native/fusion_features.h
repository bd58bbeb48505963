#pragma once
#include <span>

#include "device_features.h"
#include "fusion_problem.h"

namespace regal {

// All columns of fusion_features in order.
std::span<const FeatureInfo> fusion_feature_infos();

// What a policy of fusion and layout keys sees of the ops besides `device_features`: what the plain
// heuristic (neutral keys) does with them, and what it costs to do otherwise. Columns are between -1
// and about 4, not standardized; they depend on ratios of times alone. Where devices differ the
// fastest counts.
//
// Cost: that of building a FusionDecoder and one plan.
FeatureTable fusion_features(const FusionProblem& problem);

}  // namespace regal
