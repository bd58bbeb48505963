#include "fusion_decode.h"

#include <algorithm>

#include "fusion_gains.h"

namespace regal {
namespace {

constexpr uint32_t kOffBelow = UINT32_MAX / 8;
constexpr uint32_t kForcedFrom = UINT32_MAX / 8 * 7;
constexpr int64_t kMostSaved = int64_t{1} << 45;  // times 16 bits of a key: below 2^62

// Where the fusion of `op` with all its consumers saves: a launch and a read for each, and the write.
int64_t most_saved(const FusionProblem& problem, int32_t op) {
  const auto consumers = problem.consumers[op];
  const auto fusible = problem.fusible[op];
  int64_t saved = static_cast<int64_t>(fusible.size()) * problem.launch[0];
  for (const int32_t t : problem.writes[op]) {
    if (problem.view_of[t] >= 0) continue;
    for (const int32_t reader : problem.readers[t]) {
      if (std::binary_search(fusible.begin(), fusible.end(), reader)) saved += problem.read[problem.at(t, 0)];
    }
    if (fusible.size() == consumers.size() && problem.output_layout[t] == kNoOutput) {
      saved += problem.write[problem.at(t, 0)];
    }
  }
  return std::min(saved, kMostSaved);
}

}  // namespace

FusionGenes::FusionGenes(const FusionProblem& problem, bool on_devices) {
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    layout += !problem.fusible[v].empty();
    priority += problem.rule[v] == LayoutRule::Sensitive;
  }
  priority += layout;
  weight = priority + problem.n_ops;
  size = on_devices ? priority + FusionPlacer::genes_of(problem).size : weight + 1;
}

FusionDecoder::FusionDecoder(const FusionProblem& problem, const Objective& objective, int64_t capacity,
                             const FusionDevices* devices)
    : problem_(&problem),
      objective_(objective),
      capacity_(capacity),
      genes_(problem, devices != nullptr),
      layouts_(problem),
      times_(problem),
      merger_(problem),
      fused_(problem),
      chosen_(problem.n_ops, 0),
      group_ns_(problem.n_ops, 0) {
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    if (problem.fusible[v].empty()) continue;
    producers_.push_back(v);
    saved_.push_back(most_saved(problem, v));
  }
  rank_producers();
  rank_.resize(problem.n_ops);
  for (int32_t i = 0; i < problem.n_ops; ++i) rank_[problem.order[i]] = i;
  if (devices != nullptr) placer_.emplace(problem, *devices, objective);
}

// The greedy sequence comes first, then the others by what they could save at most.
void FusionDecoder::rank_producers() {
  const auto count = static_cast<int64_t>(producers_.size());
  std::vector<int64_t> place(problem_->n_ops, -1);
  int64_t next = 2 * count;
  for (const int32_t v : merging_sequence(*problem_, layouts_.base())) place[v] = next--;
  std::vector<int32_t> rest;
  for (int32_t i = 0; i < count; ++i) {
    if (place[producers_[i]] < 0) rest.push_back(i);
  }
  std::stable_sort(rest.begin(), rest.end(), [&](int32_t a, int32_t b) { return saved_[a] > saved_[b]; });
  for (const int32_t i : rest) place[producers_[i]] = next--;
  for (int32_t i = 0; i < count; ++i) saved_[i] = place[producers_[i]];
}

void FusionDecoder::fuse(std::span<const uint32_t> keys) {
  const FusionProblem& p = *problem_;
  merger_.start(chosen_);
  queue_.clear();
  for (size_t i = 0; i < producers_.size(); ++i) {
    if (keys[i] < kOffBelow) continue;
    // The largest first, equal ones by lower op.
    queue_.emplace_back(-((saved_[i] * static_cast<int64_t>(keys[i] >> 16)) >> 15), static_cast<int32_t>(i));
  }
  std::sort(queue_.begin(), queue_.end());
  for (int32_t v = 0; v < p.n_ops; ++v) group_ns_[v] = times_.best_ns({&v, 1}, chosen_[v]);
  for (const auto& [saved, i] : queue_) {
    const int32_t v = producers_[i];
    for (const int32_t w : p.fusible[v]) {
      if (!merger_.may_merge(v, w)) continue;
      uint8_t layout = 0;
      merger_.join(v, w, joined_, layout);
      const int64_t time = times_.best_ns(joined_, layout);
      const int64_t apart = group_ns_[merger_.group_of(v)] + group_ns_[merger_.group_of(w)];
      if (time > apart && keys[i] < kForcedFrom) continue;
      merger_.merge(v, w);
      group_ns_[merger_.group_of(v)] = time;
    }
  }
  merger_.list(groups_);
  // Ops without a layout of their own run in that of their group.
  for (const int32_t group : groups_) {
    for (const int32_t v : merger_.members(group)) chosen_[v] = merger_.layout_of(group);
  }
}

Score FusionDecoder::decode(std::span<const uint32_t> genes) {
  return score(genes, objective_.per_byte > 0 || capacity_ != kUnlimited);
}

Score FusionDecoder::score(std::span<const uint32_t> genes, bool needs_memory) {
  layouts_.decode(genes.subspan(genes_.layout, genes_.priority - genes_.layout), chosen_);
  times_.set_layouts(chosen_);
  fuse(genes.first(producers_.size()));
  if (placer_) return place(genes);
  Score score{0, 0, 0, 0};
  for (const int32_t group : groups_) score.time += group_ns_[group];
  for (const int32_t t : times_.copied()) score.time += problem_->convert[problem_->at(t, 0)];
  if (needs_memory) {
    fused_.build(merger_, groups_, chosen_, times_);
    keys_.assign(fused_.n_kernels(), kNeutralKey);
    for (int32_t v = problem_->n_ops - 1; v >= 0; --v) keys_[fused_.kernel_of(v)] = genes[genes_.priority + v];
    for (size_t i = 0; i < fused_.copied().size(); ++i) {
      const int32_t maker = problem_->producer[fused_.copied()[i]];
      if (maker >= 0) keys_[fused_.n_groups() + i] = genes[genes_.priority + maker];
    }
    const CompactProblem compact(fused_.problem());
    OrderDecoder decoder(compact);
    score.peak = decoder.decode(Decoder::Forced, keys_, genes[genes_.weight]);
    order_.assign(decoder.order().begin(), decoder.order().end());
    score.overflow = std::max<int64_t>(0, score.peak - capacity_);
  }
  score.value = objective_.value(score.time, score.peak);
  return score;
}

Score FusionDecoder::place(std::span<const uint32_t> genes) {
  fused_.build(merger_, groups_, chosen_, times_);
  starts_.assign(1, 0);
  members_.clear();
  for (const int32_t group : groups_) {
    const auto members = merger_.members(group);
    members_.insert(members_.end(), members.begin(), members.end());
    starts_.push_back(static_cast<int32_t>(members_.size()));
  }
  const Score score =
      placer_->place(fused_, times_, starts_, members_, chosen_, genes.subspan(genes_.priority));
  order_ = placer_->schedule().order;
  return score;
}

Decoded FusionDecoder::decode_fully(std::span<const uint32_t> genes) {
  Decoded found;
  found.score = score(genes, true);
  found.order = order_;
  found.problem = fused_.problem();
  if (placer_) {
    found.schedule = placer_->schedule();
    found.rows.assign(placer_->rows().begin(), placer_->rows().end());
  }
  found.pair_tensors.assign(fused_.pair_tensors().begin(), fused_.pair_tensors().end());
  for (const int32_t group : groups_) {
    FusedKernel& kernel = found.kernels.emplace_back();
    const auto members = merger_.members(group);
    kernel.ops.assign(members.begin(), members.end());
    std::sort(kernel.ops.begin(), kernel.ops.end(), [&](int32_t a, int32_t b) { return rank_[a] < rank_[b]; });
    kernel.layout = merger_.layout_of(group);
  }
  for (const int32_t tensor : fused_.copied()) {
    FusedKernel& kernel = found.kernels.emplace_back();
    kernel.tensor = tensor;
    kernel.layout = 1 - made_in(*problem_, chosen_, tensor);
  }
  return found;
}

}  // namespace regal
