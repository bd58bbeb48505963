#pragma once
#include <cstdint>

#include "device_problem.h"
#include "random_keys.h"

namespace regal {

// How keys become a schedule; see device_decode.h.
enum class DeviceDecoder { Raw, RawList, Eft, Inherit };

// Which gene decides what. A chromosome is the heads one after the other; a head ends where the next
// one begins. Raw decoders have no colocation, wait and weight genes. Neutral is kNeutralKey.
//   priority    op v: priority + v. Higher runs earlier
//   affinity    group g, device d: affinity + g * devices + d. Higher draws the group to the device
//   colocation  op v: colocation + v. High: on the device of the producer of its heaviest input.
//               Low: on that of the op whose output its heaviest reader needs most besides
//   wait        op v: wait + v. Low: waits for its turn until its inputs are made
//   transfer    tensor t: transfer + t. Higher is sent earlier
//   weight      weight + w, in the sequence of GeneWeight
struct GeneLayout {
  int64_t priority = 0;
  int64_t affinity = 0;
  int64_t colocation = 0;
  int64_t wait = 0;
  int64_t transfer = 0;
  int64_t weight = 0;
  int64_t size = 0;  // genes in all

  GeneLayout(int64_t ops, int64_t groups, int64_t devices, int64_t tensors, DeviceDecoder decoder);
  GeneLayout(const DeviceProblem& problem, DeviceDecoder decoder)
      : GeneLayout(problem.n_ops, problem.n_groups, problem.n_devices, problem.n_tensors, decoder) {}
};

// How strongly the keys of a head bend the heuristic, bounded; adapted by the search like any gene.
enum GeneWeight : int32_t {
  kPriorityWeight,    // from 1/512 to 1/2 of the longest way between the lowest and the highest key
  kAffinityWeight,    // Eft: from 1/256 to 1 times what the op takes; Inherit: share of ops pinned
  kColocationWeight,  // share of ops that follow, on each side
  kWaitWeight,        // Eft: share of ops that wait; Inherit: bytes at which an op goes elsewhere
  kOrderWeight,       // Inherit: below half, ops that free bytes first; else the reference order
  kGeneWeights
};

// The key that this share of all keys lies below.
inline uint32_t key_at(double share) { return static_cast<uint32_t>(share * UINT32_MAX); }

inline GeneLayout::GeneLayout(int64_t ops, int64_t groups, int64_t devices, int64_t tensors, DeviceDecoder decoder) {
  const bool is_raw = decoder == DeviceDecoder::Raw || decoder == DeviceDecoder::RawList;
  affinity = ops;
  colocation = affinity + groups * devices;
  wait = colocation + (is_raw ? 0 : ops);
  transfer = wait + (is_raw ? 0 : ops);
  weight = transfer + tensors;
  size = weight + (is_raw ? 0 : static_cast<int64_t>(kGeneWeights));
}

}  // namespace regal
