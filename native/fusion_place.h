#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_decode.h"
#include "fusion_contract.h"
#include "fusion_kernels.h"
#include "fusion_problem.h"

namespace regal {

// What a system of several devices adds to a fusion problem; see DeviceInput.
struct FusionDevices {
  std::vector<int64_t> groups;          // op: equal numbers run on one device
  std::vector<uint8_t> is_sendable;     // tensor
  std::vector<int64_t> resident_bytes;
  std::vector<int64_t> resident_users;  // (u, 2): op, resident
  std::vector<int64_t> capacity;        // device
  std::vector<int64_t> link_classes;    // (devices, devices)
  std::vector<int64_t> transfers;       // (classes, tensors)
  std::vector<int64_t> latency;         // (devices, devices)
  bool has_contention = true;
  bool capacity_counts_live = true;
};

// Whether all tables have their sizes and name things that exist.
bool fits(const FusionProblem& problem, const FusionDevices& devices);

// Places kernels on devices: builds the smaller problem of several devices, and hands it to one of
// its decoders (see device_decode.h). Tensors of that problem: those that leave their kernel,
// ascending, then the copies. One per thread; reuses its memory.
class FusionPlacer {
 public:
  FusionPlacer(const FusionProblem& problem, const FusionDevices& devices, const Objective& objective);

  // Genes, as if every op were a kernel and a group of its own. A kernel has those of its lowest op,
  // a copy those of the maker of its tensor.
  static GeneLayout genes_of(const FusionProblem& problem);

  // Cost: O(input log) for the smaller problem, and its decoder. The worst score where no device
  // can run all ops of a colocation group.
  Score place(const FusedGraph& kernels, KernelTimes& times, std::span<const int32_t> group_starts,
              std::span<const int32_t> members, const Layouts& layouts, std::span<const uint32_t> genes);

  const DeviceSchedule& schedule() const { return schedule_; }
  // Per tensor of the smaller problem: that of the graph, or n_tensors + the copied one.
  std::span<const int32_t> rows() const { return rows_; }

 private:
  void list_tensors(const FusedGraph& kernels, const KernelTimes& times, const Layouts& layouts);
  void list_storages(const FusedGraph& kernels);
  void list_reads(const FusedGraph& kernels, const Layouts& layouts);
  void list_ops(const FusedGraph& kernels, KernelTimes& times, std::span<const int32_t> group_starts,
                std::span<const int32_t> members, const Layouts& layouts);
  void join_groups(const FusedGraph& kernels);
  void fill_genes(const DeviceProblem& small, std::span<const uint32_t> genes);
  int32_t row_read(int32_t tensor, uint8_t layout, const Layouts& layouts) const;

  const FusionProblem* problem_;
  const FusionDevices* devices_;
  Objective objective_;
  DeviceDecoder decoder_;
  DeviceSchedule schedule_;
  std::vector<int32_t> rows_;
  std::vector<int32_t> row_of_;       // tensor -> row or -1
  std::vector<int32_t> copy_row_of_;  // tensor -> row of its copy or -1
  std::vector<int32_t> lead_;         // kernel -> its lowest op; a copy: the maker or a reader
  std::vector<int32_t> storage_row_;  // storage of the contraction -> row or -1
  std::vector<int64_t> durations_, workspace_, groups_, reads_, producers_, storages_, outputs_, controls_;
  std::vector<int64_t> bytes_, in_place_, resident_users_, transfers_;
  std::vector<int32_t> joined_;
  Genes small_genes_;
};

}  // namespace regal
