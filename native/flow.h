#pragma once
#include <cstdint>
#include <vector>

namespace regal {

// A maximum flow (Dinic), equal to the minimum cut between source and sink.
class Flow {
 public:
  // More than any sum of bytes (see problem.cc), small enough to add two.
  static constexpr int64_t kUncuttable = int64_t{1} << 62;

  // Forgets all arcs, keeps the memory. Node 0 is the source, node 1 the sink.
  void clear(int32_t nodes);

  void add_arc(int32_t from, int32_t to, int64_t capacity);

  // Returns the bytes of the minimum cut.
  int64_t run();

  // After run(): whether the source still reaches the node. Those nodes are the smallest side of a
  // minimum cut.
  bool is_with_source(int32_t node) const { return level_[node] >= 0; }

  // Arcs looked at since this object exists: the work done, whatever the machine.
  int64_t arcs_seen() const { return arcs_seen_; }

 private:
  struct Arc {
    int32_t to;
    int32_t next;      // the next arc of the same node, -1 at the end
    int64_t capacity;  // what is left of it
  };

  bool find_levels();
  int64_t push();

  std::vector<Arc> arcs_;       // arc i and i ^ 1 are a pair
  std::vector<int32_t> first_;  // node -> its arc added last
  std::vector<int32_t> current_;
  std::vector<int32_t> level_;
  std::vector<int32_t> queue_;
  std::vector<int32_t> path_;
  int64_t arcs_seen_ = 0;
};

}  // namespace regal
