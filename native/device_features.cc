#include "device_features.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace regal {
namespace {

enum Feature : int32_t {
  kOne, kDuration, kLogDuration, kDurationSpread, kTopLevel, kTopLevelSent, kBottomLevel,
  kBottomLevelSent, kSlack, kSlackSent, kDepth, kHeight, kBytesIn, kBytesOut, kLogBytesOut, kSendIn,
  kSendOut, kSendMost, kSendShare, kFanIn, kFanOut, kReaders, kTouched, kResident, kWorkspace,
  kGroupSize, kFirstReader, kLastReader, kMemoryChange, kPosition, kRankPosition, kWorkBefore,
  kDfsPosition, kWaveRank, kWaveRank2, kWaveRank4, kWaveDfs, kWaveDfs2, kWaveDfs4, kIsSource, kIsSink,
  kBeforeDuration, kBeforeSlack, kBeforeBytesOut, kAfterDuration, kAfterSlack, kAfterBytesOut,
  kFeatures
};

constexpr std::array<FeatureInfo, kFeatures> kInfos{{
    {"one", "1", "always 1: shifts all ops alike"},
    {"duration", "ns", "mean time over the devices that may run it"},
    {"log_duration", "log ns", "logarithm of it"},
    {"duration_spread", "1", "time on the slowest device over that on the fastest"},
    {"top_level", "ns", "longest way from a start to the op, without transfers"},
    {"top_level_sent", "ns", "the same, every tensor sent"},
    {"bottom_level", "ns", "longest way from the op to an end, itself included, without transfers"},
    {"bottom_level_sent", "ns", "the same, every tensor sent: the upward rank"},
    {"slack", "ns", "by how much the longest way through the op is shorter than the longest of all"},
    {"slack_sent", "ns", "the same, every tensor sent"},
    {"depth", "ops", "most ops on a way to it"},
    {"height", "ops", "most ops on a way from it"},
    {"bytes_in", "log bytes", "counted bytes of what it reads"},
    {"bytes_out", "bytes", "counted bytes of what it writes"},
    {"log_bytes_out", "log bytes", "logarithm of it"},
    {"send_in", "ns", "sending all that it reads"},
    {"send_out", "ns", "sending all that it writes"},
    {"send_most", "ns", "sending the heaviest tensor that it reads"},
    {"send_share", "1", "sending what it reads over that and its duration"},
    {"fan_in", "log tensors", "tensors that it reads"},
    {"fan_out", "log ops", "ops that wait for it"},
    {"readers", "log ops", "readers of its most read tensor"},
    {"touched", "log bytes", "bytes of the storages that it touches: its own least memory"},
    {"resident", "log bytes", "parameters and state that it uses"},
    {"workspace", "log bytes", "its workspace"},
    {"group_size", "log ops", "ops that must share its device"},
    {"first_reader", "ops", "distance to its first reader by rank"},
    {"last_reader", "ops", "distance to its last reader by rank"},
    {"memory_change", "bytes", "bytes written minus bytes of which it is the only reader"},
    {"position", "1", "its place in topological order"},
    {"rank_position", "1", "its place by falling upward rank"},
    {"work_before", "ns", "durations of all ops of higher upward rank"},
    {"dfs_position", "1", "its place in depth-first order: branches stay together"},
    {"wave_rank_1", "1", "cosine of half a wave over the places by rank"},
    {"wave_rank_2", "1", "of a whole wave"},
    {"wave_rank_4", "1", "of two waves"},
    {"wave_dfs_1", "1", "cosine of half a wave over the places in depth-first order"},
    {"wave_dfs_2", "1", "of a whole wave"},
    {"wave_dfs_4", "1", "of two waves"},
    {"is_source", "1", "whether nothing must run before it"},
    {"is_sink", "1", "whether nothing waits for it"},
    {"before_duration", "log ns", "mean of log_duration over what it waits for"},
    {"before_slack", "ns", "mean of slack_sent over what it waits for"},
    {"before_bytes_out", "log bytes", "mean of log_bytes_out over what it waits for"},
    {"after_duration", "log ns", "mean of log_duration over what waits for it"},
    {"after_slack", "ns", "mean of slack_sent over what waits for it"},
    {"after_bytes_out", "log bytes", "mean of log_bytes_out over what waits for it"},
}};

class FeatureMaker {
 public:
  explicit FeatureMaker(const CompactDevices& problem)
      : p_(problem), n_(problem.n_ops()), values_(static_cast<size_t>(kFeatures) * n_, 0.0) {}

  FeatureTable table();

 private:
  double& at(Feature feature, int32_t op) { return values_[static_cast<int64_t>(feature) * n_ + op]; }
  void add_times();
  void add_levels();
  void add_sizes();
  void add_places();
  void add_waves();
  void add_neighbors();
  std::vector<int32_t> depth_first() const;
  void standardize(Feature feature);

  const CompactDevices& p_;
  int32_t n_;
  std::vector<double> values_;
};

void FeatureMaker::add_times() {
  for (int32_t v = 0; v < n_; ++v) {
    const auto duration = static_cast<double>(p_.mean_duration[v]);
    double least = 0, most = 0;
    for (int32_t d = 0; d < p_.n_devices(); ++d) {
      if (!p_.may_run(v)[d]) continue;
      const auto time = static_cast<double>(p_.durations(v)[d]);
      least = least == 0 ? time : std::min(least, time);
      most = std::max(most, time);
    }
    double in = 0, out = 0, heaviest = 0;
    for (const int32_t t : p_.reads(v)) {
      in += static_cast<double>(p_.mean_transfer[t]);
      heaviest = std::max(heaviest, static_cast<double>(p_.mean_transfer[t]));
    }
    for (const int32_t t : p_.writes(v)) out += static_cast<double>(p_.mean_transfer[t]);
    at(kOne, v) = 1;
    at(kDuration, v) = duration;
    at(kLogDuration, v) = std::log1p(duration);
    at(kDurationSpread, v) = most / std::max(least, 1.0);
    at(kSendIn, v) = in;
    at(kSendOut, v) = out;
    at(kSendMost, v) = heaviest;
    at(kSendShare, v) = in / (in + duration + 1);
  }
}

void FeatureMaker::add_levels() {
  const DeviceProblem& s = *p_.source;
  for (const int32_t v : p_.topological) {
    for (const int32_t u : s.predecessors[v]) {
      const double end = at(kTopLevel, u) + at(kDuration, u);
      at(kTopLevel, v) = std::max(at(kTopLevel, v), end);
      at(kTopLevelSent, v) = std::max(at(kTopLevelSent, v), at(kTopLevelSent, u) + at(kDuration, u));
      at(kDepth, v) = std::max(at(kDepth, v), at(kDepth, u) + 1);
    }
    for (const int32_t t : p_.reads(v)) {
      const int32_t u = s.producer[t];
      if (u < 0) continue;
      const double end = at(kTopLevelSent, u) + at(kDuration, u) + static_cast<double>(p_.mean_transfer[t]);
      at(kTopLevelSent, v) = std::max(at(kTopLevelSent, v), end);
    }
  }
  double longest = 0, longest_sent = 0;
  for (auto it = p_.topological.rbegin(); it != p_.topological.rend(); ++it) {
    const int32_t v = *it;
    for (const int32_t w : p_.successors(v)) {
      at(kBottomLevel, v) = std::max(at(kBottomLevel, v), at(kBottomLevel, w));
      at(kHeight, v) = std::max(at(kHeight, v), at(kHeight, w) + 1);
    }
    at(kBottomLevel, v) += at(kDuration, v);
    at(kBottomLevelSent, v) = static_cast<double>(p_.upward_rank[v]);
    longest = std::max(longest, at(kTopLevel, v) + at(kBottomLevel, v));
    longest_sent = std::max(longest_sent, at(kTopLevelSent, v) + at(kBottomLevelSent, v));
  }
  for (int32_t v = 0; v < n_; ++v) {
    at(kSlack, v) = longest - at(kTopLevel, v) - at(kBottomLevel, v);
    at(kSlackSent, v) = longest_sent - at(kTopLevelSent, v) - at(kBottomLevelSent, v);
  }
}

void FeatureMaker::add_sizes() {
  const DeviceProblem& s = *p_.source;
  const auto bytes_of = [&](int32_t t) {
    return s.storage[t] < 0 ? 0.0 : static_cast<double>(s.bytes[s.storage[t]]);
  };
  for (int32_t v = 0; v < n_; ++v) {
    double in = 0, out = 0, alone = 0, touched = 0, resident = 0;
    size_t readers = 0;
    for (const int32_t t : p_.reads(v)) {
      in += bytes_of(t);
      if (s.readers[t].size() == 1 && !s.is_output[t]) alone += bytes_of(t);
    }
    for (const int32_t t : p_.writes(v)) {
      out += bytes_of(t);
      readers = std::max(readers, s.readers[t].size());
    }
    for (const int32_t storage : p_.touches(v)) touched += static_cast<double>(s.bytes[storage]);
    for (const int32_t r : s.residents[v]) resident += static_cast<double>(s.resident_bytes[r]);
    at(kBytesIn, v) = std::log1p(in);
    at(kBytesOut, v) = out;
    at(kLogBytesOut, v) = std::log1p(out);
    at(kFanIn, v) = std::log1p(static_cast<double>(p_.reads(v).size()));
    at(kFanOut, v) = std::log1p(static_cast<double>(p_.successors(v).size()));
    at(kReaders, v) = std::log1p(static_cast<double>(readers));
    at(kTouched, v) = std::log1p(touched);
    at(kResident, v) = std::log1p(resident);
    at(kWorkspace, v) = std::log1p(static_cast<double>(s.workspace[v]));
    at(kGroupSize, v) = std::log1p(static_cast<double>(s.members[s.group[v]].size()));
    at(kMemoryChange, v) = out - alone;
    at(kIsSource, v) = p_.waiting[v] == 0;
    at(kIsSink, v) = p_.successors(v).empty();
  }
}

// From the ends backwards, the longest way first: what an op needs comes right before it.
std::vector<int32_t> FeatureMaker::depth_first() const {
  std::vector<int32_t> order, stack, row;
  std::vector<uint8_t> is_seen(n_, 0);
  const auto push_sorted = [&] {
    std::sort(row.begin(), row.end(), [&](int32_t a, int32_t b) {
      const double at_a = values_[static_cast<int64_t>(kTopLevelSent) * n_ + a];
      const double at_b = values_[static_cast<int64_t>(kTopLevelSent) * n_ + b];
      return at_a != at_b ? at_a < at_b : a > b;
    });
    stack.insert(stack.end(), row.begin(), row.end());
  };
  for (int32_t v = 0; v < n_; ++v) {
    if (p_.successors(v).empty()) row.push_back(v);
  }
  push_sorted();
  while (!stack.empty()) {
    const int32_t v = stack.back();
    stack.pop_back();
    if (v < 0) {
      order.push_back(~v);
      continue;
    }
    if (is_seen[v]) continue;
    is_seen[v] = 1;
    stack.push_back(~v);
    row.clear();
    for (const int32_t u : p_.source->predecessors[v]) {
      if (!is_seen[u]) row.push_back(u);
    }
    push_sorted();
  }
  return order;
}

void FeatureMaker::add_places() {
  const double most = std::max(n_ - 1, 1);
  for (int32_t i = 0; i < n_; ++i) at(kPosition, p_.topological[i]) = i / most;
  std::vector<int32_t> by_rank(n_);
  std::iota(by_rank.begin(), by_rank.end(), 0);
  std::stable_sort(by_rank.begin(), by_rank.end(),
                   [&](int32_t a, int32_t b) { return p_.upward_rank[a] > p_.upward_rank[b]; });
  double work = 0;
  for (int32_t i = 0; i < n_; ++i) {
    at(kRankPosition, by_rank[i]) = i / most;
    at(kWorkBefore, by_rank[i]) = work;
    work += at(kDuration, by_rank[i]);
  }
  const std::vector<int32_t> by_branch = depth_first();
  for (int32_t i = 0; i < n_; ++i) at(kDfsPosition, by_branch[i]) = i / most;
  for (int32_t v = 0; v < n_; ++v) {
    double first = most, last = 0;
    for (const int32_t w : p_.successors(v)) {
      const double distance = (at(kRankPosition, w) - at(kRankPosition, v)) * most;
      first = std::min(first, distance);
      last = std::max(last, distance);
    }
    at(kFirstReader, v) = std::log1p(std::max(first, 0.0));
    at(kLastReader, v) = std::log1p(std::max(last, 0.0));
  }
}

void FeatureMaker::add_waves() {
  constexpr double kHalfWave = 3.141592653589793;
  for (int32_t v = 0; v < n_; ++v) {
    const double rank = at(kRankPosition, v) * kHalfWave, branch = at(kDfsPosition, v) * kHalfWave;
    at(kWaveRank, v) = std::cos(rank);
    at(kWaveRank2, v) = std::cos(2 * rank);
    at(kWaveRank4, v) = std::cos(4 * rank);
    at(kWaveDfs, v) = std::cos(branch);
    at(kWaveDfs2, v) = std::cos(2 * branch);
    at(kWaveDfs4, v) = std::cos(4 * branch);
  }
}

void FeatureMaker::add_neighbors() {
  constexpr std::array<Feature, 3> from{kLogDuration, kSlackSent, kLogBytesOut};
  const auto mean = [&](Feature feature, std::span<const int32_t> ops) {
    double sum = 0;
    for (const int32_t v : ops) sum += at(feature, v);
    return ops.empty() ? 0 : sum / static_cast<double>(ops.size());
  };
  for (int32_t v = 0; v < n_; ++v) {
    for (int32_t i = 0; i < 3; ++i) {
      at(static_cast<Feature>(kBeforeDuration + i), v) = mean(from[i], p_.source->predecessors[v]);
      at(static_cast<Feature>(kAfterDuration + i), v) = mean(from[i], p_.successors(v));
    }
  }
}

void FeatureMaker::standardize(Feature feature) {
  double* values = values_.data() + static_cast<int64_t>(feature) * n_;
  const double mean = std::accumulate(values, values + n_, 0.0) / std::max(n_, 1);
  double square = 0, size = 0;
  for (int32_t v = 0; v < n_; ++v) {
    square += (values[v] - mean) * (values[v] - mean);
    size = std::max(size, std::abs(values[v]));
  }
  const double deviation = std::sqrt(square / std::max(n_, 1));
  const bool is_constant = deviation <= 1e-9 * size;
  for (int32_t v = 0; v < n_; ++v) {
    values[v] = is_constant ? 0 : std::clamp((values[v] - mean) / deviation, -4.0, 4.0);
  }
}

FeatureTable FeatureMaker::table() {
  add_times();
  add_levels();
  add_sizes();
  add_places();
  add_waves();
  add_neighbors();
  for (int32_t j = kOne + 1; j < kFeatures; ++j) standardize(static_cast<Feature>(j));
  return {n_, {values_.begin(), values_.end()}};
}

}  // namespace

std::span<const FeatureInfo> feature_infos() { return kInfos; }

FeatureTable device_features(const CompactDevices& problem) { return FeatureMaker(problem).table(); }

}  // namespace regal
