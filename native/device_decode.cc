#include "device_decode.h"

#include <algorithm>
#include <cmath>

namespace regal {

ScheduleDecoder::ScheduleDecoder(const CompactDevices& problem, const Objective& objective,
                                 DeviceDecoder decoder)
    : problem_(&problem),
      objective_(objective),
      decoder_(decoder),
      layout_(*problem.source, decoder),
      needs_memory_(objective.per_byte > 0 || problem.capacity_may_bind),
      tracks_live_(decoder == DeviceDecoder::Inherit ||
                   (decoder == DeviceDecoder::Eft && problem.capacity_may_bind)),
      timeline_(problem, decoder == DeviceDecoder::Eft),
      meter_(problem),
      dispatcher_(problem),
      ready_(problem),
      live_(problem),
      one_device_(problem.one_device()),
      placement_(problem.n_ops()),
      group_device_(problem.source->n_groups),
      ends_(problem.n_devices()),
      ranks_(problem.n_ops(), 0),
      unit_(problem.n_ops(), 0.0) {
  const auto most = static_cast<double>(ReadyOps::kMostRank);
  if (decoder == DeviceDecoder::Eft) {
    int64_t longest = 1;
    for (const int64_t rank : problem.upward_rank) longest = std::max(longest, rank);
    for (int32_t v = 0; v < problem.n_ops(); ++v) {
      const double share = static_cast<double>(problem.upward_rank[v]) / static_cast<double>(longest);
      ranks_[v] = static_cast<int64_t>(share * most);
      int64_t heaviest = 0;
      for (const int32_t t : problem.reads(v)) heaviest = std::max(heaviest, problem.mean_transfer[t]);
      for (const int32_t t : problem.writes(v)) heaviest = std::max(heaviest, problem.mean_transfer[t]);
      unit_[v] = static_cast<double>(problem.mean_duration[v] + heaviest);
    }
  }
  if (decoder == DeviceDecoder::Inherit) {
    for (int32_t i = 0; i < problem.n_ops(); ++i) {
      const double share = static_cast<double>(problem.n_ops() - i) / problem.n_ops();
      ranks_[problem.reference[i]] = static_cast<int64_t>(share * most);
    }
    find_levels();
  }
}

Score ScheduleDecoder::decode(const Genes& genes) {
  timeline_.clear();
  if (tracks_live_) live_.clear();
  std::fill(group_device_.begin(), group_device_.end(), -1);
  switch (decoder_) {
    case DeviceDecoder::Raw: decode_raw(genes); break;
    case DeviceDecoder::RawList: decode_raw_list(genes); break;
    case DeviceDecoder::Eft: decode_eft(genes); break;
    case DeviceDecoder::Inherit: decode_inherit(genes); break;
  }
  return score();
}

Score ScheduleDecoder::score() {
  Score score{0, 0, timeline_.time(), 0};
  if (needs_memory_) {
    meter_.measure(timeline_);
    score.overflow = meter_.overflow();
    score.peak = meter_.most();
  }
  score.value = objective_.value(score.time, score.peak);
  return score;
}

Score ScheduleDecoder::score_of(const DeviceSchedule& schedule) const {
  DeviceFigures figures;
  simulate_devices(*problem_->source, schedule, figures);
  Score score = regal::score_of(figures, objective_);
  if (!needs_memory_) score.peak = 0;
  return score;
}

void ScheduleDecoder::put(const Genes& genes, int32_t op, int32_t device) {
  group_device_[problem_->source->group[op]] = device;
  timeline_.put(op, device, {genes.data() + layout_.transfer, static_cast<size_t>(problem_->n_tensors())});
  if (tracks_live_) live_.put(op, device);
}

// The allowed device of the highest affinity.
int32_t ScheduleDecoder::device_wanted(const Genes& genes, int32_t op) const {
  const uint32_t* keys = affinities(genes, op);
  int32_t wanted = -1;
  for (int32_t d = 0; d < problem_->n_devices(); ++d) {
    if (problem_->may_run(op)[d] && (wanted < 0 || keys[d] > keys[wanted])) wanted = d;
  }
  return wanted;
}

// The device of `other` where `op` may run and fits; -1 if there is none.
int32_t ScheduleDecoder::device_beside(int32_t op, int32_t other) const {
  const int32_t device = other < 0 ? -1 : timeline_.device_of(other);
  if (device < 0 || !problem_->may_run(op)[device] || overflow_with(op, device) > 0) return -1;
  return device;
}

void ScheduleDecoder::decode_raw(const Genes& genes) {
  for (int32_t v = 0; v < problem_->n_ops(); ++v) placement_[v] = device_wanted(genes, v);
  dispatcher_.run(placement_, {genes.data() + layout_.priority, static_cast<size_t>(problem_->n_ops())},
                  {genes.data() + layout_.transfer, static_cast<size_t>(problem_->n_tensors())}, timeline_);
}

void ScheduleDecoder::decode_raw_list(const Genes& genes) {
  ready_.start(ranks_, {{genes.data(), static_cast<size_t>(problem_->n_ops())}, 1.0, {}, 0}, timeline_);
  for (int32_t step = 0; step < problem_->n_ops(); ++step) {
    const int32_t v = ready_.next();
    put(genes, v, device_wanted(genes, v));
    ready_.finish(v);
  }
}

void ScheduleDecoder::encode(std::span<const int32_t> placement, std::span<const int32_t> order,
                             Genes& genes) const {
  const auto n = static_cast<int64_t>(order.size());
  genes.assign(static_cast<size_t>(layout_.size), kNeutralKey);
  for (int64_t i = 0; i < n; ++i) {
    const int32_t v = order[i];
    // Places fall evenly; with the strongest bend a key can make any rank of any other.
    const int64_t place = ((n - i) << 32) / (n + 1);
    const int64_t key = is_raw() ? place : int64_t{kNeutralKey} + 2 * (place / 4 - ranks_[v]);
    genes[layout_.priority + v] = static_cast<uint32_t>(std::clamp<int64_t>(key, 0, UINT32_MAX));
    uint32_t* keys = genes.data() + affinity_of(v);
    std::fill_n(keys, problem_->n_devices(), is_raw() ? 0 : kNeutralKey);
    keys[placement[v]] = UINT32_MAX;
    for (const int32_t t : problem_->reads(v)) {
      uint32_t& sent = genes[layout_.transfer + t];
      if (sent == kNeutralKey) sent = static_cast<uint32_t>(place);
    }
  }
  if (is_raw()) return;
  genes[layout_.weight + kPriorityWeight] = UINT32_MAX;
  if (decoder_ == DeviceDecoder::Inherit) genes[layout_.weight + kAffinityWeight] = UINT32_MAX;
}

}  // namespace regal
