#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "device_problem.h"
#include "problem.h"

namespace regal {

inline constexpr int kLayouts = 2;     // 0 contiguous, 1 channels last
inline constexpr int8_t kNoOutput = -2;  // of a tensor that the graph does not return
inline constexpr int8_t kAnyLayout = -1;

enum class LayoutRule : uint8_t { Fixed, Agnostic, Sensitive };

// One graph: which ops run as one kernel, in which layout? docs/decisions/0023 has it in words.
//
// A kernel is a group of ops, or a copy of a tensor into the other layout. A group of one op takes
// its alone time, a larger one launch + max(work of its ops, traffic at its border).
struct FusionProblem {
  int32_t n_ops = 0;
  int32_t n_tensors = 0;
  int32_t n_storages = 0;
  int32_t n_devices = 1;
  int32_t most_ops = 64;  // in a group

  Csr predecessors;                     // op -> ops: data and control
  Csr successors;                       // the inverse
  Csr consumers;                        // op -> ops that read what it makes
  Csr fusible;                          // op -> those of them that may run in its kernel
  Csr reads;                            // op -> tensors, each once
  Csr writes;                           // op -> tensors
  Csr readers;                          // tensor -> ops
  std::vector<int32_t> producer;        // tensor -> op, or -1
  std::vector<int32_t> view_of;         // tensor -> the tensor whose bytes it shows, or -1
  std::vector<uint8_t> is_view;         // op: makes views alone
  std::vector<uint8_t> is_anchor;       // op: a group has one at most
  std::vector<uint8_t> is_apart;        // op: no group with an anchor has it
  std::vector<LayoutRule> rule;         // op
  std::vector<uint8_t> is_free;         // op: no layout changes anything about it
  std::vector<uint8_t> has_layouts;     // tensor: its layouts differ
  std::vector<int8_t> output_layout;    // tensor
  std::vector<int32_t> storage;         // tensor -> storage, or -1: takes no counted memory
  std::vector<int64_t> tensor_bytes;    // of a copy
  std::vector<int64_t> bytes;           // storage
  std::vector<uint8_t> is_input;        // storage
  std::vector<int64_t> workspace;       // op
  std::vector<InPlace> in_place;        // op, input tensor, output tensor; sorted by op
  std::vector<int64_t> in_place_of;     // op -> its range in in_place
  std::vector<int32_t> order;           // all ops, predecessors first, by lower id

  std::vector<std::array<int64_t, kLayouts>> alone;  // [op * n_devices + device], or kForbidden
  std::vector<std::array<int64_t, kLayouts>> work;   // likewise
  std::vector<int64_t> launch;                       // device
  std::vector<int64_t> read;                         // [tensor * n_devices + device]
  std::vector<int64_t> write;
  std::vector<int64_t> convert;

  size_t at(int32_t row, int32_t device) const {
    return static_cast<size_t>(row) * static_cast<size_t>(n_devices) + static_cast<size_t>(device);
  }
};

enum class FusionFault { None, BadIndex, NegativeSize, BadTime, TooLarge, Cycle, BadRow };

// `guilty` is the op (Cycle, BadTime), tensor, storage, or row that breaks the rule; -1: the arrays
// do not fit together.
struct FusionVerdict {
  FusionFault fault = FusionFault::None;
  int64_t guilty = -1;
};

// What the caller knows, as flat rows.
struct FusionInput {
  int64_t n_devices = 1;
  int64_t most_ops = 64;
  std::span<const int64_t> edges;           // (m, 2): earlier op, later op; all dependencies
  std::span<const int64_t> reads;           // (k, 2): op, tensor
  std::span<const int64_t> producers;       // (t,): op or -1
  std::span<const int64_t> view_of;         // (t,): tensor or -1
  std::span<const int64_t> has_layouts;     // (t,): 0 or 1
  std::span<const int64_t> output_layouts;  // (t,): -2, -1, 0, 1
  std::span<const int64_t> storages;        // (t,): storage or -1
  std::span<const int64_t> tensor_bytes;    // (t,)
  std::span<const int64_t> bytes;           // (s,)
  std::span<const int64_t> input_storages;
  std::span<const int64_t> workspace;       // (n,)
  std::span<const int64_t> in_place;        // (p, 3): op, input tensor, output tensor
  std::span<const int64_t> pairs;           // (q, 2): producer, consumer
  std::span<const int64_t> anchors;         // ops
  std::span<const int64_t> apart;           // ops
  std::span<const int64_t> rules;           // (n,): as LayoutRule
  std::span<const int64_t> alone;           // (n, devices, 2)
  std::span<const int64_t> work;            // (n, devices, 2)
  std::span<const int64_t> launch;          // (devices,)
  std::span<const int64_t> read;            // (t, devices)
  std::span<const int64_t> write;
  std::span<const int64_t> convert;
};

// Fills `problem`. All sums of times and of sizes are bounded here once. Cost: O(input log).
FusionVerdict build_fusion_problem(const FusionInput& input, FusionProblem& problem);

}  // namespace regal
