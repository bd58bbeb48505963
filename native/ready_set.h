#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace regal {

// A ready op with two ranks in bytes, lower is better. Ties go to the higher key, then to the
// lower op.
struct ReadyOp {
  int64_t first;
  int64_t second;
  uint32_t key;
  int32_t op;
};

// The ready ops of a list decoder, with the best one under either rank: a tournament with 16
// entries per match, replayed only where something changed and only when asked. Up to 16 ready
// ops it is a plain scan; with thousands of them a change costs two or three matches.
class ReadySet {
 public:
  explicit ReadySet(int32_t n_ops);

  void clear();
  bool is_empty() const { return entries_.empty(); }
  bool holds(int32_t op) const { return place_[op] >= 0; }
  void insert(const ReadyOp& entry);
  void update(const ReadyOp& entry);
  void remove(int32_t op);

  // The best by `first` and the best by `second` (ties by `first`). The set is not empty.
  struct Best {
    const ReadyOp* by_first;
    const ReadyOp* by_second;
  };
  Best best();

  // The best by `first` among those with `second` <= limit; the best by `second` if none is.
  // Cost: matches in which none fits are skipped, but in the worst case O(ready ops).
  const ReadyOp& best_within(int64_t limit);

 private:
  struct Winner {
    int32_t by_first;
    int32_t by_second;
  };
  struct Level {
    std::vector<Winner> winners;     // of 16 entries of the level below
    std::vector<uint8_t> is_stale;   // then every match above it is stale too
    std::vector<int32_t> stale;
  };

  void mark(size_t entry);
  size_t refresh();
  Winner at(size_t level, size_t i) const;
  Winner match(size_t level, size_t begin, size_t end) const;
  void search(int64_t limit, size_t level, size_t begin, size_t end, int32_t& best) const;
  size_t size_at(size_t level) const;

  std::vector<ReadyOp> entries_;
  std::vector<int32_t> place_;  // op -> its entry, -1 if it is not ready
  std::vector<Level> levels_;   // levels_[k] holds winners over level k; entries are level 0
};

}  // namespace regal
