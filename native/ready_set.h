#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
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
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  explicit ReadySet(int32_t n_ops);

  void clear() { size_ = 0; }
  bool is_empty() const { return size_ == 0; }
  // Places of ops that left are overwritten lazily: an entry must point back.
  bool holds(int32_t op) const {
    const auto place = static_cast<size_t>(place_[op]);
    return place < size_ && ops_[place] == op;
  }

  void insert(const ReadyOp& entry) {
    place_[entry.op] = static_cast<int32_t>(size_);
    write(size_++, entry);
    if (size_ == kMatch + 1) mark(0);
    mark(size_ - 1);
  }
  void update(const ReadyOp& entry) {
    write(place_[entry.op], entry);
    mark(place_[entry.op]);
  }
  void remove(int32_t op) {
    const size_t hole = place_[op];
    const size_t last = size_ - 1;
    mark(hole);
    mark(last);
    write(hole, {firsts_[last], seconds_[last], keys_[last], ops_[last]});
    place_[ops_[hole]] = static_cast<int32_t>(hole);
    size_ = last;
  }

  // The best by `first`, the best by `second` (ties by `first`; any one if all are kNever) and
  // the value of its second rank. The set is not empty.
  struct Best {
    int32_t by_first;
    int32_t by_second;
    int64_t second;
  };
  Best best() {
    const Winner winner = size_ <= kMatch ? match_entries(0, size_) : match_levels();
    return {ops_[winner.by_first], ops_[winner.by_second], seconds_[winner.by_second]};
  }

  // The best by `first` among those with `second` <= limit; the best by `second` if none is.
  // Cost: matches in which none fits are skipped, but in the worst case O(ready ops).
  int32_t best_within(int64_t limit);

 private:
  static constexpr int kShift = 4;
  static constexpr size_t kMatch = size_t{1} << kShift;
  struct Winner {
    int32_t by_first;
    int32_t by_second;
  };
  struct Level {
    std::vector<Winner> winners;    // of 16 entries of the level below
    std::vector<uint8_t> is_stale;  // then every match above it is stale too
    std::vector<int32_t> stale;
  };

  void write(size_t place, const ReadyOp& entry) {
    firsts_[place] = entry.first;
    seconds_[place] = entry.second;
    keys_[place] = entry.key;
    ops_[place] = entry.op;
  }
  // Matches are not kept while one scan covers all entries: insert() marks them when it grows.
  void mark(size_t place) {
    if (size_ > kMatch) mark_levels(place);
  }
  void mark_levels(size_t place);
  bool breaks_tie(int32_t a, int32_t b) const {
    return keys_[a] != keys_[b] ? keys_[a] > keys_[b] : ops_[a] < ops_[b];
  }
  bool is_better_first(int32_t a, int32_t b) const {
    return firsts_[a] != firsts_[b] ? firsts_[a] < firsts_[b] : breaks_tie(a, b);
  }
  bool is_better_second(int32_t a, int32_t b) const {
    if (seconds_[a] != seconds_[b]) return seconds_[a] < seconds_[b];
    return seconds_[a] != kNever && is_better_first(a, b);
  }

  // Branches on the outcome of a match cannot be predicted; a minimum needs none.
  Winner match_entries(size_t begin, size_t end) const {
    int64_t first = firsts_[begin];
    int64_t second = seconds_[begin];
    for (size_t i = begin + 1; i < end; ++i) {
      first = firsts_[i] < first ? firsts_[i] : first;
      second = seconds_[i] < second ? seconds_[i] : second;
    }
    const auto start = static_cast<int32_t>(begin);
    Winner best{-1, second == kNever ? start : -1};
    for (int32_t i = start; i < static_cast<int32_t>(end); ++i) {
      if (firsts_[i] == first && (best.by_first < 0 || breaks_tie(i, best.by_first))) {
        best.by_first = i;
      }
    }
    if (best.by_second >= 0) return best;
    for (int32_t i = start; i < static_cast<int32_t>(end); ++i) {
      if (seconds_[i] == second && (best.by_second < 0 || is_better_first(i, best.by_second))) {
        best.by_second = i;
      }
    }
    return best;
  }
  Winner match_levels();
  Winner match_winners(const Level& level, size_t begin, size_t end) const;
  size_t refresh();
  void search(int64_t limit, size_t level, size_t begin, size_t end, int32_t& best) const;
  size_t size_at(size_t level) const;

  size_t size_ = 0;
  std::vector<int64_t> firsts_;
  std::vector<int64_t> seconds_;
  std::vector<uint32_t> keys_;
  std::vector<int32_t> ops_;
  std::vector<int32_t> place_;  // op -> its entry
  std::vector<Level> levels_;   // levels_[k] holds winners over level k; entries are level 0
};

}  // namespace regal
