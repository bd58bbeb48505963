#include "offsets_windows.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "offsets_sections.h"

namespace regal {
namespace {

using Clock = std::chrono::steady_clock;

// Above these the search would look at millions of pairs per node; the greedy placement stays.
constexpr size_t kLargestSearch = 2000;  // pieces
constexpr int32_t kDeepest = 20000;      // decisions on one path: each takes stack

// Either offset[b] >= offset[a] + a_below, or offset[a] >= offset[b] + b_below.
struct Choice {
  int32_t a;
  int32_t b;
  int64_t a_below;
  int64_t b_below;
};

class WindowSearch {
 public:
  WindowSearch(const WindowProblem& problem, const OffsetLimits& limits)
      : problem_(problem), limits_(limits), start_(Clock::now()) {
    const auto& pieces = problem.pieces;
    if (pieces.size() > kLargestSearch) return;
    for (size_t i = 0; i < pieces.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const WindowPiece &p = pieces[i], &q = pieces[j];
        if (p.buffer == q.buffer || p.first_step > q.last_step || q.first_step > p.last_step) continue;
        choices_.push_back({p.buffer, q.buffer, p.high - q.low, q.high - p.low});
      }
    }
  }

  // True if everything fits below `capacity`; else see is_stopped().
  bool fits(int64_t capacity) {
    capacity_ = capacity;
    const auto n = static_cast<int32_t>(problem_.bytes.size());
    offset_.assign(n, 0);
    arcs_.assign(n, {});
    trail_.clear();
    depth_ = 0;
    for (int32_t b = 0; b < n; ++b) {
      if (problem_.fixed[b] != kFree) offset_[b] = problem_.fixed[b];
      if (offset_[b] > capacity_ - problem_.bytes[b]) return false;
    }
    return decide();
  }

  bool is_stopped() const { return is_stopped_; }
  int64_t nodes() const { return nodes_; }
  const std::vector<int64_t>& offsets() const { return offset_; }

 private:
  struct Arc {
    int32_t to;
    int64_t distance;
  };

  bool decide() {
    const Choice* open = first_open();
    if (open == nullptr) return true;
    if (must_stop()) return false;
    if (depth_ >= kDeepest) is_stopped_ = true;
    const int64_t raise_b = offset_[open->a] + open->a_below - offset_[open->b];
    const int64_t raise_a = offset_[open->b] + open->b_below - offset_[open->a];
    const bool a_first = raise_b <= raise_a;
    for (const bool a_is_below : {a_first, !a_first}) {
      const int32_t from = a_is_below ? open->a : open->b, to = a_is_below ? open->b : open->a;
      const size_t mark = trail_.size();
      arcs_[from].push_back({to, a_is_below ? open->a_below : open->b_below});
      ++depth_;
      if (raise(from) && decide()) return true;
      --depth_;
      arcs_[from].pop_back();
      for (; trail_.size() > mark; trail_.pop_back()) offset_[trail_.back().first] = trail_.back().second;
      if (is_stopped_) return false;
    }
    return false;
  }

  // The overlapping pair that lies lowest: settling the bottom first keeps the rest in place.
  const Choice* first_open() const {
    const Choice* best = nullptr;
    int64_t lowest = std::numeric_limits<int64_t>::max();
    for (const Choice& choice : choices_) {
      if (offset_[choice.b] >= offset_[choice.a] + choice.a_below) continue;
      if (offset_[choice.a] >= offset_[choice.b] + choice.b_below) continue;
      const int64_t height = std::max(offset_[choice.a], offset_[choice.b]);
      if (height < lowest) {
        lowest = height;
        best = &choice;
      }
    }
    return best;
  }

  // Moves up whatever must lie above `from`. A cycle ends at the capacity.
  bool raise(int32_t from) {
    std::vector<int32_t> pending = {from};
    while (!pending.empty()) {
      const int32_t below = pending.back();
      pending.pop_back();
      for (const Arc& arc : arcs_[below]) {
        const int64_t needed = offset_[below] + arc.distance;
        if (offset_[arc.to] >= needed) continue;
        if (problem_.fixed[arc.to] != kFree) return false;
        trail_.emplace_back(arc.to, offset_[arc.to]);
        offset_[arc.to] = round_up(needed, problem_.alignment[arc.to]);
        if (offset_[arc.to] > capacity_ - problem_.bytes[arc.to]) return false;
        pending.push_back(arc.to);
      }
    }
    return true;
  }

  bool must_stop() {
    ++nodes_;
    is_stopped_ = is_stopped_ || (limits_.nodes > 0 && nodes_ > limits_.nodes);
    if (limits_.cancel != nullptr && limits_.cancel->load(std::memory_order_relaxed)) is_stopped_ = true;
    if (limits_.seconds > 0 && nodes_ % 64 == 0) {
      is_stopped_ |= std::chrono::duration<double>(Clock::now() - start_).count() > limits_.seconds;
    }
    return is_stopped_;
  }

  const WindowProblem& problem_;
  const OffsetLimits limits_;
  const Clock::time_point start_;
  std::vector<Choice> choices_;
  std::vector<int64_t> offset_;
  std::vector<std::vector<Arc>> arcs_;
  std::vector<std::pair<int32_t, int64_t>> trail_;
  int64_t capacity_ = 0;
  int64_t nodes_ = 0;
  int32_t depth_ = 0;
  bool is_stopped_ = false;
};

// The bytes used at one step, and the ends that are fixed, bound the arena from below.
void find_bound(const WindowProblem& problem, OffsetResult& result) {
  std::map<int64_t, int64_t> change;
  for (const WindowPiece& piece : problem.pieces) {
    change[piece.first_step] += piece.high - piece.low;
    change[piece.last_step + 1] -= piece.high - piece.low;
  }
  int64_t live = 0;
  for (const auto& [step, bytes] : change) {
    live += bytes;
    if (live <= result.fullest_bytes) continue;
    result.fullest_bytes = live;
    result.fullest_step = step;
  }
  result.lower_bound = result.fullest_bytes;
  for (size_t b = 0; b < problem.bytes.size(); ++b) {
    result.lower_bound =
        std::max(result.lower_bound, std::max<int64_t>(problem.fixed[b], 0) + problem.bytes[b]);
  }
}

int64_t arena_of(const WindowProblem& problem, const std::vector<int64_t>& offsets) {
  int64_t arena = 0;
  for (size_t b = 0; b < offsets.size(); ++b) arena = std::max(arena, offsets[b] + problem.bytes[b]);
  return arena;
}

// Fixed buffers, then the largest first, each at its lowest legal offset.
// False if two fixed buffers overlap.
bool place_by_size(const WindowProblem& problem, std::vector<int64_t>& offsets) {
  const auto n = static_cast<int32_t>(problem.bytes.size());
  std::vector<std::vector<WindowPiece>> pieces_of(n);
  for (const WindowPiece& piece : problem.pieces) pieces_of[piece.buffer].push_back(piece);
  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const bool a_is_fixed = problem.fixed[a] != kFree, b_is_fixed = problem.fixed[b] != kFree;
    if (a_is_fixed != b_is_fixed) return a_is_fixed;
    return problem.bytes[a] != problem.bytes[b] ? problem.bytes[a] > problem.bytes[b] : a < b;
  });
  std::vector<WindowPiece> placed;
  std::vector<std::pair<int64_t, int64_t>> forbidden;  // offsets strictly between the two overlap
  offsets.assign(n, 0);
  for (const int32_t b : order) {
    forbidden.clear();
    for (const WindowPiece& own : pieces_of[b]) {
      for (const WindowPiece& other : placed) {
        if (own.first_step > other.last_step || other.first_step > own.last_step) continue;
        const int64_t base = offsets[other.buffer];
        forbidden.emplace_back(base + other.low - own.high, base + other.high - own.low);
      }
    }
    std::sort(forbidden.begin(), forbidden.end());
    int64_t at = std::max<int64_t>(problem.fixed[b], 0);
    for (const auto& [above, below] : forbidden) {
      if (at <= above || at >= below) continue;
      if (problem.fixed[b] != kFree) return false;
      at = round_up(below, problem.alignment[b]);
    }
    offsets[b] = at;
    placed.insert(placed.end(), pieces_of[b].begin(), pieces_of[b].end());
  }
  return true;
}

}  // namespace

OffsetResult solve_windows(const WindowProblem& problem, int64_t capacity, const OffsetLimits& limits) {
  OffsetResult result;
  find_bound(problem, result);
  const bool has_capacity = capacity != kFree;
  std::vector<int64_t> offsets;
  if (!place_by_size(problem, offsets) || (has_capacity && capacity < result.lower_bound)) {
    result.status = OffsetStatus::Infeasible;
    return result;
  }
  const int64_t goal = has_capacity ? capacity : result.lower_bound;
  WindowSearch search(problem, limits);
  for (;;) {
    result.offsets = offsets;
    result.arena_bytes = arena_of(problem, offsets);
    if (result.arena_bytes <= goal) break;
    if (problem.pieces.size() > kLargestSearch) return result;
    const bool fits = search.fits(has_capacity ? capacity : result.arena_bytes - 1);
    result.nodes = search.nodes();
    if (fits) {
      offsets = search.offsets();
      continue;
    }
    if (search.is_stopped()) return result;
    result.lower_bound = has_capacity ? capacity + 1 : result.arena_bytes;
    if (!has_capacity) break;
    result.status = OffsetStatus::Infeasible;
    return result;
  }
  result.status = OffsetStatus::Optimal;
  return result;
}

}  // namespace regal
