#include "fusion_place.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace regal {

bool fits(const FusionProblem& problem, const FusionDevices& devices) {
  const auto n = static_cast<size_t>(problem.n_ops), t = static_cast<size_t>(problem.n_tensors);
  const auto d = static_cast<size_t>(problem.n_devices);
  if (devices.groups.size() != n || devices.is_sendable.size() != t || devices.capacity.size() != d ||
      devices.link_classes.size() != d * d || devices.latency.size() != d * d ||
      devices.resident_users.size() % 2 != 0 || (t > 0 && devices.transfers.size() % t != 0)) {
    return false;
  }
  const auto classes = t == 0 ? 0 : static_cast<int64_t>(devices.transfers.size() / t);
  const auto is_class = [&](int64_t link) { return link >= -1 && link < std::max<int64_t>(classes, 1); };
  if (!std::all_of(devices.link_classes.begin(), devices.link_classes.end(), is_class)) return false;
  for (size_t i = 0; i < devices.resident_users.size(); i += 2) {
    const int64_t op = devices.resident_users[i], resident = devices.resident_users[i + 1];
    if (op < 0 || op >= problem.n_ops || resident < 0 ||
        resident >= static_cast<int64_t>(devices.resident_bytes.size())) {
      return false;
    }
  }
  return true;
}

FusionPlacer::FusionPlacer(const FusionProblem& problem, const FusionDevices& devices, const Objective& objective)
    : problem_(&problem),
      devices_(&devices),
      objective_(objective),
      decoder_(objective.per_ns > 0 ? DeviceDecoder::Eft : DeviceDecoder::Inherit),
      row_of_(problem.n_tensors),
      copy_row_of_(problem.n_tensors) {}

GeneLayout FusionPlacer::genes_of(const FusionProblem& problem) {
  return {problem.n_ops, problem.n_ops, problem.n_devices, problem.n_tensors, DeviceDecoder::Eft};
}

// A tensor that is made and read inside one kernel, in a storage that is inner, is no tensor here.
void FusionPlacer::list_tensors(const FusedGraph& kernels, const KernelTimes& times, const Layouts& layouts) {
  const FusionProblem& p = *problem_;
  rows_.clear();
  producers_.clear();
  storages_.clear();
  outputs_.clear();
  std::fill(copy_row_of_.begin(), copy_row_of_.end(), -1);
  for (int32_t t = 0; t < p.n_tensors; ++t) {
    row_of_[t] = -1;
    if (!devices_->is_sendable[t]) continue;
    const int32_t maker = p.producer[t];
    const int32_t storage = kernels.storage_read(times, t, made_in(p, layouts, t));
    const auto readers = p.readers[t];
    const auto is_outside = [&](int32_t op) { return kernels.kernel_of(op) != kernels.kernel_of(maker); };
    const bool is_kept = maker < 0 || p.output_layout[t] != kNoOutput || (storage >= 0 && !kernels.is_inner(storage)) ||
                         needs_copy(p, layouts, t) || std::any_of(readers.begin(), readers.end(), is_outside);
    if (!is_kept) continue;
    row_of_[t] = static_cast<int32_t>(rows_.size());
    rows_.push_back(t);
    producers_.push_back(maker < 0 ? -1 : kernels.kernel_of(maker));
    storages_.push_back(storage);
  }
  for (size_t i = 0; i < kernels.copied().size(); ++i) {
    const int32_t t = kernels.copied()[i];
    copy_row_of_[t] = static_cast<int32_t>(rows_.size());
    rows_.push_back(p.n_tensors + t);
    producers_.push_back(kernels.n_groups() + static_cast<int32_t>(i));
    storages_.push_back(p.n_storages + static_cast<int32_t>(i));
  }
  for (int32_t t = 0; t < p.n_tensors; ++t) {
    if (p.output_layout[t] == kNoOutput) continue;
    const uint8_t made = made_in(p, layouts, t);
    const int32_t row = row_read(t, p.output_layout[t] < 0 ? made : static_cast<uint8_t>(p.output_layout[t]), layouts);
    if (row >= 0) outputs_.push_back(row);
  }
}

int32_t FusionPlacer::row_read(int32_t tensor, uint8_t layout, const Layouts& layouts) const {
  const bool is_other = problem_->has_layouts[tensor] && made_in(*problem_, layouts, tensor) != layout;
  return is_other ? copy_row_of_[tensor] : row_of_[tensor];
}

void FusionPlacer::list_storages(const FusedGraph& kernels) {
  const auto bytes = kernels.bytes();
  storage_row_.assign(bytes.size(), -1);
  bytes_.clear();
  for (int64_t& storage : storages_) {
    if (storage < 0 || bytes[storage] == 0) {
      storage = -1;
      continue;
    }
    if (storage_row_[storage] < 0) {
      storage_row_[storage] = static_cast<int32_t>(bytes_.size());
      bytes_.push_back(bytes[storage]);
    }
    storage = storage_row_[storage];
  }
  in_place_.clear();
  for (const InPlace& pair : kernels.problem().in_place) {
    const int32_t in = storage_row_[pair.in], out = storage_row_[pair.out];
    if (in >= 0 && out >= 0) in_place_.insert(in_place_.end(), {pair.op, in, out});
  }
}

void FusionPlacer::list_reads(const FusedGraph& kernels, const Layouts& layouts) {
  const FusionProblem& p = *problem_;
  reads_.clear();
  controls_.clear();
  for (int32_t v = 0; v < p.n_ops; ++v) {
    const int32_t kernel = kernels.kernel_of(v);
    for (const int32_t t : p.reads[v]) {
      const int32_t row = row_read(t, layouts[v], layouts);
      if (row >= 0 && producers_[row] != kernel) reads_.insert(reads_.end(), {kernel, row});
    }
    const auto consumers = p.consumers[v];
    for (const int32_t w : p.successors[v]) {
      if (kernels.kernel_of(w) == kernel || std::binary_search(consumers.begin(), consumers.end(), w)) continue;
      controls_.insert(controls_.end(), {kernel, kernels.kernel_of(w)});
    }
  }
  for (size_t i = 0; i < kernels.copied().size(); ++i) {
    const int32_t row = row_of_[kernels.copied()[i]];
    if (row >= 0) reads_.insert(reads_.end(), {kernels.n_groups() + static_cast<int64_t>(i), row});
  }
}

void FusionPlacer::list_ops(const FusedGraph& kernels, KernelTimes& times, std::span<const int32_t> group_starts,
                            std::span<const int32_t> members, const Layouts& layouts) {
  const FusionProblem& p = *problem_;
  durations_.clear();
  lead_.assign(kernels.n_kernels(), -1);
  for (int32_t k = 0; k < kernels.n_groups(); ++k) {
    const auto ops = members.subspan(group_starts[k], group_starts[k + 1] - group_starts[k]);
    lead_[k] = *std::min_element(ops.begin(), ops.end());
    for (int32_t d = 0; d < p.n_devices; ++d) {
      const int64_t time = times.group_ns(ops, layouts[ops[0]], d);
      durations_.push_back(time == kForbidden ? kForbidden : std::max<int64_t>(time, 1));
    }
  }
  for (size_t i = 0; i < kernels.copied().size(); ++i) {
    const int32_t t = kernels.copied()[i];
    const auto readers = p.readers[t];
    lead_[kernels.n_groups() + i] = p.producer[t] >= 0 ? p.producer[t] : readers.empty() ? 0 : readers[0];
    for (int32_t d = 0; d < p.n_devices; ++d) durations_.push_back(std::max<int64_t>(p.convert[p.at(t, d)], 1));
  }
  workspace_ = kernels.problem().workspace;
  resident_users_.clear();
  for (size_t i = 0; i < devices_->resident_users.size(); i += 2) {
    const auto op = static_cast<int32_t>(devices_->resident_users[i]);
    resident_users_.insert(resident_users_.end(), {kernels.kernel_of(op), devices_->resident_users[i + 1]});
  }
  join_groups(kernels);
}

// Kernels with ops of one colocation group run on one device. Copies are free.
void FusionPlacer::join_groups(const FusedGraph& kernels) {
  joined_.resize(kernels.n_kernels());
  std::iota(joined_.begin(), joined_.end(), 0);
  const auto find = [&](int32_t k) {
    while (joined_[k] != k) k = joined_[k] = joined_[joined_[k]];
    return k;
  };
  std::map<int64_t, int32_t> first;
  for (int32_t v = 0; v < problem_->n_ops; ++v) {
    if (devices_->groups[v] < 0) continue;
    const int32_t other = first.try_emplace(devices_->groups[v], kernels.kernel_of(v)).first->second;
    const int32_t a = find(other), b = find(kernels.kernel_of(v));
    joined_[std::max(a, b)] = std::min(a, b);
  }
  groups_.resize(joined_.size());
  for (int32_t k = 0; k < kernels.n_kernels(); ++k) groups_[k] = find(k);
}

void FusionPlacer::fill_genes(const DeviceProblem& small, std::span<const uint32_t> genes) {
  const GeneLayout layout(small, decoder_);
  const GeneLayout of_ops = genes_of(*problem_);
  const int64_t devices = problem_->n_devices;
  small_genes_.assign(static_cast<size_t>(layout.size), kNeutralKey);
  for (int32_t k = static_cast<int32_t>(lead_.size()) - 1; k >= 0; --k) {
    const int32_t v = lead_[k];
    small_genes_[layout.priority + k] = genes[of_ops.priority + v];
    small_genes_[layout.colocation + k] = genes[of_ops.colocation + v];
    small_genes_[layout.wait + k] = genes[of_ops.wait + v];
    // The lowest kernel of a group comes last here, and decides.
    for (int64_t d = 0; d < devices; ++d) {
      small_genes_[layout.affinity + small.group[k] * devices + d] = genes[of_ops.affinity + v * devices + d];
    }
  }
  for (size_t row = 0; row < rows_.size(); ++row) {
    const int32_t t = rows_[row] < problem_->n_tensors ? rows_[row] : rows_[row] - problem_->n_tensors;
    small_genes_[layout.transfer + static_cast<int64_t>(row)] = genes[of_ops.transfer + t];
  }
  const auto weights = genes.last(kGeneWeights);
  std::copy(weights.begin(), weights.end(), small_genes_.begin() + layout.weight);
}

Score FusionPlacer::place(const FusedGraph& kernels, KernelTimes& times, std::span<const int32_t> group_starts,
                          std::span<const int32_t> members, const Layouts& layouts, std::span<const uint32_t> genes) {
  list_tensors(kernels, times, layouts);
  list_storages(kernels);
  list_reads(kernels, layouts);
  list_ops(kernels, times, group_starts, members, layouts);
  const auto tensors = static_cast<size_t>(problem_->n_tensors);
  transfers_.clear();
  for (size_t c = 0; tensors > 0 && c < devices_->transfers.size() / tensors; ++c) {
    for (const int32_t row : rows_) transfers_.push_back(devices_->transfers[c * tensors + row % problem_->n_tensors]);
  }
  DeviceInput input;
  input.n_devices = problem_->n_devices;
  input.durations = durations_;
  input.workspace = workspace_;
  input.groups = groups_;
  input.reads = reads_;
  input.producers = producers_;
  input.tensor_storages = storages_;
  input.outputs = outputs_;
  input.controls = controls_;
  input.bytes = bytes_;
  input.in_place = in_place_;
  input.resident_bytes = devices_->resident_bytes;
  input.resident_users = resident_users_;
  input.capacity = devices_->capacity;
  input.link_classes = devices_->link_classes;
  input.transfers = transfers_;
  input.latency = devices_->latency;
  input.has_contention = devices_->has_contention;
  input.capacity_counts_live = devices_->capacity_counts_live;
  DeviceProblem small;
  if (build_device_problem(input, small).fault != DeviceFault::None) return {};
  // Good on one device: the decoders lean on it.
  const CompactProblem one_device(kernels.problem());
  OrderDecoder reference(one_device);
  const std::vector<uint32_t> neutral(kernels.n_kernels(), kNeutralKey);
  reference.decode(Decoder::Forced, neutral, kNeutralKey);
  const CompactDevices compact(small, reference.order());
  ScheduleDecoder decoder(compact, objective_, decoder_);
  fill_genes(small, genes);
  const Score score = decoder.decode(small_genes_);
  schedule_ = decoder.schedule();
  return score;
}

}  // namespace regal
