#include "fusion_features.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "fusion_decode.h"
#include "fusion_gains.h"

namespace regal {
namespace {

constexpr FeatureInfo kInfos[] = {
    {"has_fusion_key", "0 or 1", "some consumer may run in its kernel"},
    {"has_layout_key", "0 or 1", "its time depends on its layout"},
    {"is_anchor", "0 or 1", "convolution or product: a kernel has one at most"},
    {"is_reduction", "0 or 1", "no kernel with an anchor has it"},
    {"is_view", "0 or 1", "it makes views alone"},
    {"is_agnostic", "0 or 1", "either layout, in equal time"},
    {"consumers", "log(1 + x) / 2", "ops that read what it makes"},
    {"fusible_share", "share", "of the consumers that may run in its kernel"},
    {"is_merged", "0 or 1", "the greedy search merges it with a consumer"},
    {"merge_place", "share", "how early it does: 1 first, 0 never"},
    {"kernel_ops", "log / 4", "ops of its kernel in the neutral plan"},
    {"kernel_saves", "share", "of the time of the ops of that kernel alone that it saves"},
    {"kernel_takes", "share", "of its fusible consumers that are in that kernel"},
    {"escapes", "0 or 1", "what it makes is read outside that kernel, or returned"},
    {"pair_saves", "share", "of the time of both alone that the best pair with a consumer saves"},
    {"pair_stakes", "log(1 + x) / 4", "ns that the best pair saves or loses, over the mean op"},
    {"work_share", "share", "of arithmetic in arithmetic and traffic"},
    {"time", "log(1 + x) / 4", "its time alone over that of the mean op"},
    {"layout_gain", "share", "how much faster it is with the channels last, over both times"},
    {"layout_stakes", "log(1 + x) / 4", "difference of both times over the time of the mean op"},
    {"cheapest_layout", "-1, 0, 1", "in the minimum cut: contiguous, no choice, channels last"},
    {"convert", "log(1 + x) / 4", "ns to convert what it makes, over the mean op"},
};
enum Column {
  kHasFusionKey, kHasLayoutKey, kIsAnchor, kIsReduction, kIsView, kIsAgnostic, kConsumers, kFusibleShare,
  kIsMerged, kMergePlace, kKernelOps, kKernelSaves, kKernelTakes, kEscapes, kPairSaves, kPairStakes,
  kWorkShare, kTime, kLayoutGain, kLayoutStakes, kCheapestLayout, kConvert, kColumns
};
static_assert(std::size(kInfos) == kColumns);

// The least time of an op in its cheaper layout, or in a given one, over devices that can run it.
int64_t least_ns(const std::vector<std::array<int64_t, kLayouts>>& table, const FusionProblem& p, int32_t op,
                 int layout) {
  int64_t least = INT64_MAX;
  for (int32_t d = 0; d < p.n_devices; ++d) {
    const int64_t ns = table[p.at(op, d)][layout];
    if (ns != kForbidden) least = std::min(least, ns);
  }
  return least == INT64_MAX ? 0 : least;
}

class Describer {
 public:
  explicit Describer(const FusionProblem& problem)
      : p_(problem), base_(LayoutDecoder(problem).base()), times_(problem) {
    table_.n_ops = p_.n_ops;
    table_.columns.assign(static_cast<size_t>(kColumns) * p_.n_ops, 0);
    for (int32_t v = 0; v < p_.n_ops; ++v) {
      const int64_t contiguous = least_ns(p_.alone, p_, v, 0), last = least_ns(p_.alone, p_, v, 1);
      alone_.push_back({contiguous, last});
      mean_ += static_cast<double>(std::min(contiguous, last));
    }
    mean_ = std::max(mean_ / std::max(p_.n_ops, 1), 1.0);
  }

  FeatureTable run() {
    const std::vector<int32_t> sequence = merging_sequence(p_, base_);
    for (size_t i = 0; i < sequence.size(); ++i) {
      set(kIsMerged, sequence[i], 1);
      set(kMergePlace, sequence[i], 1 - static_cast<double>(i) / static_cast<double>(sequence.size()));
    }
    describe_kernels();
    for (int32_t v = 0; v < p_.n_ops; ++v) describe(v);
    return std::move(table_);
  }

 private:
  void set(Column column, int32_t op, double value) {
    table_.columns[static_cast<size_t>(column) * p_.n_ops + op] = static_cast<float>(value);
  }
  double scaled(int64_t ns) const { return std::log1p(std::abs(static_cast<double>(ns)) / mean_) / 4; }
  int64_t time_of(int32_t op) const { return std::min(alone_[op][0], alone_[op][1]); }

  void describe_kernels() {
    FusionDecoder decoder(p_, {1, 0}, kUnlimited);
    const Genes neutral(decoder.layout().size, kNeutralKey);
    const Decoded plan = decoder.decode_fully(neutral);
    Layouts layouts(p_.n_ops, 0);
    kernel_of_.assign(p_.n_ops, -1);
    for (size_t k = 0; k < plan.kernels.size(); ++k) {
      for (const int32_t v : plan.kernels[k].ops) {
        layouts[v] = static_cast<uint8_t>(plan.kernels[k].layout);
        kernel_of_[v] = static_cast<int32_t>(k);
      }
    }
    layouts_ = layouts;
    times_.set_layouts(layouts_);
    for (const FusedKernel& kernel : plan.kernels) {
      int64_t apart = 0;
      for (const int32_t v : kernel.ops) apart += times_.best_ns({&v, 1}, layouts_[v]);
      if (kernel.ops.empty()) continue;
      const int64_t fused = times_.best_ns(kernel.ops, static_cast<uint8_t>(kernel.layout));
      for (const int32_t v : kernel.ops) {
        set(kKernelOps, v, std::log(static_cast<double>(kernel.ops.size())) / 4);
        set(kKernelSaves, v, share(apart - fused, apart));
      }
    }
  }

  static double share(int64_t part, int64_t whole) {
    return whole <= 0 ? 0 : std::clamp(static_cast<double>(part) / static_cast<double>(whole), -1.0, 1.0);
  }

  void describe(int32_t v) {
    const auto fusible = p_.fusible[v];
    const auto consumers = static_cast<int64_t>(p_.consumers[v].size());
    const bool is_sensitive = p_.rule[v] == LayoutRule::Sensitive;
    set(kHasFusionKey, v, !fusible.empty());
    set(kHasLayoutKey, v, is_sensitive);
    set(kIsAnchor, v, p_.is_anchor[v]);
    set(kIsReduction, v, p_.is_apart[v]);
    set(kIsView, v, p_.is_view[v]);
    set(kIsAgnostic, v, p_.rule[v] == LayoutRule::Agnostic);
    set(kConsumers, v, std::log1p(static_cast<double>(consumers)) / 2);
    set(kFusibleShare, v, share(static_cast<int64_t>(fusible.size()), consumers));
    set(kTime, v, scaled(time_of(v)));
    int64_t together = 0;
    for (const int32_t w : fusible) together += kernel_of_[w] == kernel_of_[v];
    set(kKernelTakes, v, share(together, static_cast<int64_t>(fusible.size())));
    describe_traffic(v);
    describe_pairs(v);
    if (p_.rule[v] != LayoutRule::Fixed) set(kCheapestLayout, v, base_[v] ? 1 : -1);
    if (is_sensitive) {
      const auto [contiguous, last] = alone_[v];
      set(kLayoutGain, v, share(contiguous - last, contiguous + last));
      set(kLayoutStakes, v, scaled(contiguous - last));
    }
  }

  void describe_traffic(int32_t v) {
    const int64_t work = std::min(least_ns(p_.work, p_, v, 0), least_ns(p_.work, p_, v, 1));
    int64_t traffic = 0, convert = 0;
    bool is_read_outside = false;
    for (const int32_t t : p_.reads[v]) traffic += p_.read[p_.at(t, 0)];
    for (const int32_t t : p_.writes[v]) {
      traffic += p_.view_of[t] < 0 ? p_.write[p_.at(t, 0)] : 0;
      convert += p_.has_layouts[t] ? p_.convert[p_.at(t, 0)] : 0;
      is_read_outside = is_read_outside || p_.output_layout[t] != kNoOutput;
      for (const int32_t w : p_.readers[t]) is_read_outside = is_read_outside || kernel_of_[w] != kernel_of_[v];
    }
    set(kWorkShare, v, share(work, work + traffic));
    set(kConvert, v, scaled(convert));
    set(kEscapes, v, is_read_outside);
  }

  void describe_pairs(int32_t v) {
    const int64_t own = times_.best_ns({&v, 1}, layouts_[v]);
    int64_t best = INT64_MIN, both = 1;
    for (const int32_t w : p_.fusible[v]) {
      const int32_t pair[] = {v, w};
      const int64_t apart = own + times_.best_ns({&w, 1}, layouts_[w]);
      const int64_t fused = times_.best_ns(pair, layouts_[w]);
      if (fused == kForbidden) continue;
      const int64_t saved = apart - fused;
      if (saved > best) best = saved, both = apart;
    }
    if (best == INT64_MIN) return;
    set(kPairSaves, v, share(best, both));
    set(kPairStakes, v, best < 0 ? -scaled(best) : scaled(best));
  }

  const FusionProblem& p_;
  Layouts base_;
  KernelTimes times_;
  FeatureTable table_;
  std::vector<std::array<int64_t, kLayouts>> alone_;  // per op
  double mean_ = 0;
  Layouts layouts_;  // of the neutral plan
  std::vector<int32_t> kernel_of_;
};

}  // namespace

std::span<const FeatureInfo> fusion_feature_infos() { return kInfos; }

FeatureTable fusion_features(const FusionProblem& problem) { return Describer(problem).run(); }

}  // namespace regal
