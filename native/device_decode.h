#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "decode.h"
#include "device_compact.h"
#include "device_dispatch.h"
#include "device_genes.h"
#include "device_live.h"
#include "device_memory.h"
#include "device_ready.h"
#include "device_simulate.h"
#include "device_timeline.h"

namespace regal {

// Turns keys into schedules and says what they are worth. One per thread; reuses its memory.
//
// Raw: a group runs on the device of its highest affinity; whenever a device or a link is free it
// takes the ready op or tensor of the highest key.
// RawList: likewise, but the order is fixed first: always the ready op of the highest key.
// Eft: ops by falling upward rank, each where it ends first, in a gap if one holds it: HEFT
// (Topcuoglu et al. 2002) with links that carry one tensor at a time. Keys bend ranks and ends.
// Inherit: an op follows the producer of its heaviest input, unless a key pins it or too many bytes
// are live there; in the sequence of a good order for one device, or memory-greedy, bent by keys.
//
// Eft and Inherit avoid devices whose memory would overflow. Neutral keys give the plain heuristic.
class ScheduleDecoder {
 public:
  ScheduleDecoder(const CompactDevices& problem, const Objective& objective, DeviceDecoder decoder);

  // Cost: O((reads * devices + touches) and a logarithm of the ready ops); memory is measured only
  // where the objective or a capacity asks for it. Else overflow and peak of the score are 0.
  Score decode(const Genes& genes);

  // The schedule that was decoded last.
  DeviceSchedule schedule() const { return timeline_.schedule(); }
  const Timeline& timeline() const { return timeline_; }
  const MemoryMeter* meter() const { return needs_memory_ ? &meter_ : nullptr; }

  // What a complete schedule is worth, as decode() counts it.
  Score score_of(const DeviceSchedule& schedule) const;
  // Keys that come as close to a schedule as the decoder can.
  void encode(std::span<const int32_t> placement, std::span<const int32_t> order, Genes& genes) const;

 private:
  // What the weight genes say; see GeneWeight.
  struct Bends {
    double affinity = 0;
    uint32_t pinned_above = 0;
    uint32_t follows_above = 0;
    uint32_t sibling_below = 0;
    int64_t level = 0;  // bytes
  };

  void decode_raw(const Genes& genes);
  void decode_raw_list(const Genes& genes);
  void decode_eft(const Genes& genes);
  void decode_inherit(const Genes& genes);
  int32_t earliest_device(const Genes& genes, int32_t op);
  int32_t inherited_device(const Genes& genes, int32_t op) const;
  int32_t device_beside(int32_t op, int32_t other) const;
  int32_t device_wanted(const Genes& genes, int32_t op) const;
  void put(const Genes& genes, int32_t op, int32_t device);
  Score score();
  void find_levels();

  bool is_raw() const { return decoder_ == DeviceDecoder::Raw || decoder_ == DeviceDecoder::RawList; }
  double weight(const Genes& genes, GeneWeight which) const {
    return genes[layout_.weight + which] * 0x1.0p-32;
  }
  int64_t affinity_of(int32_t op) const {  // its first gene
    return layout_.affinity + static_cast<int64_t>(problem_->source->group[op]) * problem_->n_devices();
  }
  const uint32_t* affinities(const Genes& genes, int32_t op) const {
    return genes.data() + affinity_of(op);
  }
  int64_t overflow_with(int32_t op, int32_t device) const {
    return problem_->capacity_may_bind ? live_.overflow_with(op, device) : 0;
  }

  const CompactDevices* problem_;
  Objective objective_;
  DeviceDecoder decoder_;
  GeneLayout layout_;
  bool needs_memory_;
  bool tracks_live_;
  Timeline timeline_;
  MemoryMeter meter_;
  Dispatcher dispatcher_;
  ReadyOps ready_;
  LiveEstimate live_;
  OrderDecoder one_device_;
  Bends bends_;
  std::vector<int32_t> placement_;     // Raw
  std::vector<int32_t> group_device_;  // -1: no op of the group was put
  std::vector<int64_t> ends_;          // Eft: of one op, per device
  std::vector<int64_t> ranks_;         // see ReadyOps: by upward rank, by reference order, or 0
  std::vector<double> unit_;           // Eft, per op: what it takes; affinities count in this, ns
  int64_t least_level_ = 1;            // Inherit: bytes that some op needs at least
  int64_t most_level_ = 1;             // bytes that suffice on one device
};

}  // namespace regal
