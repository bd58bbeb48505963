#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_compact.h"

namespace regal {

// List scheduling of a given placement: whenever a device is free it runs, of its ops that can
// start, the one with the longest way to the end (its bottom level). The way counts the times and
// transfers of this placement; `extra` lengthens the way of an op and of all that leads to it, so
// that a few numbers reorder whole branches. One per thread; reuses its memory.
//
// Links send in the sequence in which tensors are made: with contention, or where several ops
// read one input of the graph, the times are estimates; else they are those of the simulation.
class ListScheduler {
 public:
  static constexpr int64_t kTooLate = INT64_MAX;

  explicit ListScheduler(const CompactDevices& problem);

  // Returns when the last op ends; kTooLate as soon as it is clear that this is after `limit`:
  // then nothing else is known. Cost: O((ops + reads) log ops + ops * devices).
  int64_t run(std::span<const int32_t> placement, std::span<const int64_t> extra,
              int64_t limit = kTooLate);

  bool is_exact() const { return is_exact_; }
  std::span<const int32_t> order() const { return order_; }  // all ops by start
  int64_t start_of(int32_t op) const { return start_[op]; }
  // The ops of a longest chain of waits, last op first.
  void find_critical(std::vector<int32_t>& ops) const;

 private:
  struct Edge {  // to a reader, or over a control edge
    int32_t op;
    int32_t tensor;  // -1: control
  };
  struct Entry {
    int64_t key;
    int32_t op;
    bool operator<(const Entry& other) const {  // heaps have the highest key, then the lowest op, on top
      return key != other.key ? key < other.key : op > other.op;
    }
  };

  std::span<const Edge> edges(int32_t op) const {
    return {edges_.data() + edges_of_[op], edges_.data() + edges_of_[op + 1]};
  }
  int64_t lag(const Edge& edge, int32_t source, int32_t target) const;
  int64_t find_ways(std::span<const int32_t> placement, std::span<const int64_t> extra);
  void release_sources(std::span<const int32_t> placement);
  void finish(int32_t op, std::span<const int32_t> placement);
  int64_t arrival(const Edge& edge, int64_t end, int32_t source, int32_t target);

  const CompactDevices* problem_;
  int32_t n_devices_;
  bool is_exact_;
  bool has_contention_;
  std::vector<Edge> edges_;
  std::vector<int32_t> edges_of_;  // n + 1
  std::vector<int32_t> waiting_;   // per op: edges that enter it

  std::vector<int64_t> way_;
  std::vector<int64_t> tail_;  // the way without extras
  std::vector<int64_t> start_;
  std::vector<int64_t> end_;
  std::vector<int64_t> ready_;  // per op: when all that it waits for is there
  std::vector<int32_t> cause_;  // per op: what it waited for last; -1: nothing
  std::vector<int32_t> left_;
  std::vector<int32_t> order_;
  std::vector<std::vector<Entry>> startable_;  // per device: ops that can start, by way
  std::vector<std::vector<Entry>> coming_;     // per device: ops that can start later, by time
  std::vector<int64_t> free_from_;
  std::vector<int32_t> last_;
  std::vector<int64_t> link_free_;  // [source * devices + target]
  std::vector<int64_t> sent_;       // [target]: arrival of the tensor that is sent now, or -1
};

}  // namespace regal
