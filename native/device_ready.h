#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "device_compact.h"
#include "device_timeline.h"

namespace regal {

// The ops that may be put next, best first: a rank that the problem gives, bent by keys. Ties go to
// the lower op. One per thread; reuses its memory.
//
// All ops are sorted once per schedule; the ready ones are bits at their places in that sequence. A
// heap of the ready ones takes three times as long, for its branches cannot be predicted.
class ReadyOps {
 public:
  static constexpr int64_t kMostRank = int64_t{1} << 30;

  // What bends the ranks. The rank rises by `bend` times the difference between a key and neutral,
  // where a bend of 1/4 makes all keys together as wide as all ranks. An op whose wait key is below
  // `wait_below` does not come before its inputs are made; no wait keys: none waits.
  struct Keys {
    std::span<const uint32_t> priority;
    double bend = 1;
    std::span<const uint32_t> wait;
    uint32_t wait_below = 0;
  };

  explicit ReadyOps(const CompactDevices& problem);

  // `ranks`: per op, 0 to kMostRank. The timeline is where ops are put.
  void start(std::span<const int64_t> ranks, const Keys& keys, const Timeline& timeline);
  int32_t next();           // once per op
  void finish(int32_t op);  // after it was put: its successors may be ready

 private:
  struct Entry {
    uint32_t rank;
    int32_t op;
  };
  void sort(std::span<const int64_t> ranks);
  void add(int32_t op);
  void set(int32_t op);
  void admit();
  bool is_empty() const { return bits_.back()[0] == 0; }

  const CompactDevices* problem_;
  const Timeline* timeline_ = nullptr;
  Keys keys_;
  std::vector<int32_t> waiting_;
  std::vector<Entry> sorted_;      // best first
  std::vector<Entry> unsorted_;
  std::vector<int32_t> place_;     // per op, in sorted_
  std::vector<int32_t> counts_;
  std::vector<std::vector<uint64_t>> bits_;            // ready ones; level k + 1: words of k not 0
  std::vector<std::pair<int64_t, int32_t>> not_made_;  // heap: -time, -op
};

}  // namespace regal
