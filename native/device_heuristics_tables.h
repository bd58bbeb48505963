#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "device_problem.h"

namespace regal {

// Sums of what several ops share, such as a resident per user, are not bounded by
// build_device_problem: they stop at 2^61.
inline int64_t capped_sum(int64_t a, int64_t b) {
  constexpr int64_t kMost = int64_t{1} << 61;
  return a > kMost - b ? kMost : a + b;
}

// The mean of `count` values, rounded down, without a sum that could overflow.
class Mean {
 public:
  explicit Mean(int64_t count) : count_(count) {}
  void add(int64_t value, int64_t times = 1) {
    whole_ += value / count_ * times;
    rest_ += value % count_ * times;
  }
  int64_t value() const { return whole_ + rest_ / count_; }

 private:
  int64_t count_;
  int64_t whole_ = 0;
  int64_t rest_ = 0;
};

// What heuristics ask of a problem again and again. Keeps a reference to it.
struct DeviceTables {
  explicit DeviceTables(const DeviceProblem& problem);

  const DeviceProblem& problem;
  std::vector<int32_t> topological;     // lowest op first: the file's order wherever it is legal
  Csr touched;                          // op -> storages that it reads or writes
  std::vector<int32_t> touchers;        // per storage: how many ops touch it
  std::vector<uint8_t> stays;           // per storage: an output, live to the end where it was made
  Csr group_residents;                  // group -> residents of all its ops
  std::vector<int64_t> mean_duration;   // per op: over the devices that may run it
  std::vector<int64_t> mean_transfer;   // per tensor: over all links; 0 with one device
  int64_t mean_latency = 0;             // of a control edge; 0 with one device

  int32_t n_ops() const { return problem.n_ops; }
  int32_t n_devices() const { return problem.n_devices; }
};

// Times from the start of an op to the end of the last op below it; every op ranks above its
// successors. Cost of all ranks: O(reads + control edges).
std::vector<int64_t> upward_ranks(const DeviceTables& tables);  // mean durations and transfers
std::vector<int64_t> static_levels(const DeviceTables& tables);  // the same without transfers
std::vector<int64_t> placed_ranks(const DeviceTables& tables, std::span<const int32_t> placement);

// Mean time from the first op above to the start of the op, transfers included.
std::vector<int64_t> downward_ranks(const DeviceTables& tables);

// PEFT's table, [op * n_devices + device]: the least time from the end of the op on the device to
// the end of the graph if every op below ran where that is fastest, with no waiting.
std::vector<int64_t> optimistic_costs(const DeviceTables& tables);

// Legal orders that a split can follow, each made when it is first asked for.
class BaseOrders {
 public:
  enum Kind { kFile, kDfs, kLevels, kLeastMemory, kSafeMemory, kReverseDfs, kCount };

  // Keeps a reference.
  explicit BaseOrders(const DeviceTables& tables) : tables_(tables) {}
  const std::vector<int32_t>& operator[](Kind kind);

 private:
  const DeviceTables& tables_;
  std::array<std::vector<int32_t>, kCount> orders_;
};

}  // namespace regal
