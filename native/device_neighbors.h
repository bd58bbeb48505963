#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_compact.h"
#include "rng.h"

namespace regal {

// Groups of ops that change to one device together.
struct Move {
  std::vector<int32_t> groups;  // each once; all of them on another device now
  int32_t target = 0;
};

// Proposes moves that a schedule can profit from: single ops, clusters of ops that would be dear to
// part, and runs of ops that follow each other on a device. One per chain of a search.
class Neighbors {
 public:
  explicit Neighbors(const CompactDevices& problem);

  // Makes `move` a move of a part of one device, around a random op: mostly one of `critical`.
  // `order` has all ops by start. Returns false if the part may not run on the chosen device.
  bool propose(std::span<const int32_t> placement, std::span<const int32_t> order,
               std::span<const int32_t> critical, Rng& rng, Move& move);

  // Makes `back` a move from move.target to `source` of about `bytes` of residents, so that `move`
  // fits. Returns false if it found none.
  bool propose_return(std::span<const int32_t> placement, const Move& move, int32_t source,
                      int64_t bytes, Rng& rng, Move& back);

  // Bytes of residents that only this group has.
  int64_t bytes_of(int32_t group) const { return group_bytes_[group]; }

 private:
  struct Neighbor {
    int32_t op;
    int64_t cost;  // of being on another device: the mean time of the transfer
  };

  std::span<const Neighbor> neighbors(int32_t op) const {
    return {neighbors_.data() + neighbors_of_[op], neighbors_.data() + neighbors_of_[op + 1]};
  }
  void collect_cluster(std::span<const int32_t> placement, int32_t op, int32_t most, Rng& rng);
  void collect_run(std::span<const int32_t> placement, std::span<const int32_t> order, int32_t op,
                   int32_t most, Rng& rng);
  int32_t other_device(std::span<const int32_t> placement, int32_t source, Rng& rng) const;
  void take(int32_t op);
  bool may_run(const Move& move) const;

  const CompactDevices* problem_;
  std::vector<Neighbor> neighbors_;
  std::vector<int32_t> neighbors_of_;   // n + 1
  std::vector<int64_t> costs_;          // of all edges, sorted: thresholds are drawn from them
  std::vector<int64_t> group_bytes_;
  std::vector<int32_t> taken_;          // per group: the number of the last proposal that took it
  int32_t proposal_ = 0;
  std::vector<int32_t> ops_;            // of the part
  std::vector<int32_t> groups_;
};

}  // namespace regal
