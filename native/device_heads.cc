#include "device_heads.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace regal {
namespace {

// A tanh of fractions alone: the same bits on every machine. At most 0.03 off.
float squashed(float x) {
  const float y = std::clamp(x, -3.0f, 3.0f);
  return y * (27 + y * y) / (27 + 9 * y * y);
}

uint32_t key_of(float x) {
  const double share = 0.5 + 0.5 * static_cast<double>(squashed(x));
  return static_cast<uint32_t>(std::min(share * 0x1.0p32, 0x1.0p32 - 1));
}

bool has_weights(std::span<const double> weights) {
  return std::ranges::any_of(weights, [](double w) { return w != 0; });
}

FeatureTable with_extra(FeatureTable table, std::span<const float> extra) {
  table.columns.insert(table.columns.end(), extra.begin(), extra.end());
  return table;
}

FeatureTable grouped(const CompactDevices& problem, const FeatureTable& of_ops) {
  const DeviceProblem& p = *problem.source;
  if (p.n_groups == p.n_ops) return {};
  FeatureTable table{p.n_groups, {}};
  const int64_t features = static_cast<int64_t>(of_ops.columns.size()) / std::max(p.n_ops, 1);
  for (int64_t j = 0; j < features; ++j) {
    for (int32_t g = 0; g < p.n_groups; ++g) {
      double sum = 0;
      for (const int32_t v : p.members[g]) sum += of_ops.column(static_cast<int32_t>(j))[v];
      table.columns.push_back(static_cast<float>(sum / static_cast<double>(p.members[g].size())));
    }
  }
  return table;
}

}  // namespace

FeatureKeys::FeatureKeys(const CompactDevices& problem, DeviceDecoder decoder, std::span<const float> extra)
    : problem_(&problem),
      layout_(*problem.source, decoder),
      n_features_(static_cast<int64_t>(feature_infos().size() + extra.size() / std::max(problem.n_ops(), 1))),
      of_ops_(with_extra(device_features(problem), extra)),
      of_groups_(grouped(problem, of_ops_)) {}

std::vector<double> FeatureKeys::usual_deviation(const DeviceProblem& problem, int64_t n_extra) {
  std::vector<double> deviation(n_weights(problem, n_extra), 1.0);
  const int64_t features = static_cast<int64_t>(feature_infos().size()) + n_extra;
  const auto set = [&](int64_t head, int64_t count, double value) {
    std::fill_n(deviation.begin() + head * features, count, value);
  };
  const int64_t colocation = kAffinity + problem.n_devices;
  set(kAffinity, features, 0.0);
  set(colocation, features, 2.0);
  set(colocation + 1, 2 * features, 0.0);
  set(n_heads(problem), kGeneWeights, 2.0);
  return deviation;
}

void FeatureKeys::fill_head(const FeatureTable& table, std::span<const double> weights, uint32_t* keys,
                            int64_t stride) const {
  const int32_t n = table.n_ops;
  if (!has_weights(weights)) {
    for (int32_t i = 0; i < n; ++i) keys[i * stride] = kNeutralKey;
    return;
  }
  constexpr int32_t kBlock = 256;  // its sums stay in the nearest cache
  std::array<float, kBlock> sums;
  const float scale = 1 / std::sqrt(static_cast<float>(feature_infos().size()));
  for (int32_t begin = 0; begin < n; begin += kBlock) {
    const int32_t count = std::min(kBlock, n - begin);
    sums.fill(0);
    for (int64_t j = 0; j < n_features_; ++j) {
      const float weight = static_cast<float>(weights[j]) * scale;
      if (weight == 0) continue;
      const float* values = table.column(static_cast<int32_t>(j)) + begin;
      for (int32_t i = 0; i < count; ++i) sums[i] += weight * values[i];
    }
    for (int32_t i = 0; i < count; ++i) keys[(begin + i) * stride] = key_of(sums[i]);
  }
}

void FeatureKeys::fill(std::span<const double> weights, Genes& genes) const {
  const int32_t devices = problem_->n_devices();
  genes.resize(static_cast<size_t>(layout_.size));
  const auto head = [&](int32_t number) {
    return weights.subspan(static_cast<size_t>(number * n_features_), n_features_);
  };
  fill_head(of_ops_, head(kPriority), genes.data() + layout_.priority, 1);
  const FeatureTable& groups = of_groups_.n_ops > 0 ? of_groups_ : of_ops_;
  for (int32_t d = 0; d < devices; ++d) {
    fill_head(groups, head(kAffinity + d), genes.data() + layout_.affinity + d, devices);
  }
  const int32_t next = kAffinity + devices;
  if (layout_.wait > layout_.colocation) {
    fill_head(of_ops_, head(next), genes.data() + layout_.colocation, 1);
    fill_head(of_ops_, head(next + 1), genes.data() + layout_.wait, 1);
  }
  uint32_t* sent = genes.data() + layout_.transfer;
  std::fill_n(sent, problem_->n_tensors(), kNeutralKey);
  if (has_weights(head(next + 2))) {
    std::vector<uint32_t> of_producer(problem_->n_ops());
    fill_head(of_ops_, head(next + 2), of_producer.data(), 1);
    for (int32_t t = 0; t < problem_->n_tensors(); ++t) {
      if (problem_->source->producer[t] >= 0) sent[t] = of_producer[problem_->source->producer[t]];
    }
  }
  const auto bends = weights.subspan(static_cast<size_t>(n_heads(*problem_->source) * n_features_));
  for (int64_t i = layout_.weight; i < layout_.size; ++i) {
    genes[i] = key_of(static_cast<float>(bends[i - layout_.weight]));
  }
}

}  // namespace regal
