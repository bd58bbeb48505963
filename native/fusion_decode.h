#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compact.h"
#include "decode.h"
#include "device_simulate.h"
#include "fusion_contract.h"
#include "fusion_groups.h"
#include "fusion_kernels.h"
#include "fusion_layout.h"
#include "fusion_place.h"
#include "fusion_problem.h"

namespace regal {

// Which gene decides what. Neutral is kNeutralKey.
//   fusion    producer i of those with a fusible pair: below an eighth it merges with nobody; from
//             seven eighths on it merges even where that takes longer; higher comes earlier
//   layout    sensitive op i; see LayoutDecoder
//   priority  op v: a kernel runs earlier the higher the key of its lowest op, a copy with its maker
//   weight    one device: how strongly priorities bend, see OrderDecoder; several: what follows the
//             priorities in FusionPlacer
struct FusionGenes {
  int64_t fusion = 0;
  int64_t layout = 0;
  int64_t priority = 0;
  int64_t weight = 0;
  int64_t size = 0;

  // `on_devices`: whether kernels are placed on several devices.
  FusionGenes(const FusionProblem& problem, bool on_devices);
};

// Kernels as a smaller problem "in which order", with the order that the keys give.
struct Decoded {
  Score score;
  std::vector<FusedKernel> kernels;  // number k is op k of the problem
  std::vector<int32_t> order;
  OrderProblem problem;
  DeviceSchedule schedule;           // several devices: of kernels
  std::vector<int32_t> rows;         // several devices: see FusionPlacer
  std::vector<InPlace> pair_tensors;  // row i: op, input and output tensor of problem.in_place[i]
};

// Turns keys into kernels and their order, on several devices their placement too. One per thread; reuses its memory.
//
// Layouts come first, then groups: producers in the sequence of the time that fusing them saves,
// times their key, each merged with one consumer after the other while that is legal and saves time
// (XLA's priority fusion, without duplicates). Then the kernels are ordered like ops.
class FusionDecoder {
 public:
  // `devices`: what the system adds where there are several, else null. It must outlive the decoder.
  // `capacity` is that of the one device.
  FusionDecoder(const FusionProblem& problem, const Objective& objective, int64_t capacity,
                const FusionDevices* devices = nullptr);

  const FusionGenes& layout() const { return genes_; }

  // Cost: O((ops + reads) log), and the merges. Memory is measured, and an order found, only where
  // the objective or the capacity asks for it; else the order is any legal one.
  Score decode(std::span<const uint32_t> genes);
  // Decodes, measures memory, and says all that there is to say.
  Decoded decode_fully(std::span<const uint32_t> genes);

 private:
  void rank_producers();
  void fuse(std::span<const uint32_t> keys);
  Score score(std::span<const uint32_t> genes, bool needs_memory);
  Score place(std::span<const uint32_t> genes);

  const FusionProblem* problem_;
  Objective objective_;
  int64_t capacity_;
  FusionGenes genes_;
  LayoutDecoder layouts_;
  KernelTimes times_;
  GroupMerger merger_;
  FusedGraph fused_;
  std::optional<FusionPlacer> placer_;
  std::vector<int32_t> producers_;  // those with a fusion key, in the sequence of their genes
  std::vector<int64_t> saved_;  // like producers_: ns that fusing it with all its consumers saves
  Layouts chosen_;
  std::vector<int64_t> group_ns_;
  std::vector<std::pair<int64_t, int32_t>> queue_;
  std::vector<int32_t> joined_;
  std::vector<int32_t> groups_;
  std::vector<int32_t> starts_;   // several devices: of the members of each group
  std::vector<int32_t> members_;
  std::vector<uint32_t> keys_;
  std::vector<int32_t> rank_;  // per op: its place in FusionProblem::order
  std::vector<int32_t> order_;
};

}  // namespace regal
