#include "order_within.h"

#include <algorithm>
#include <tuple>

#include "valley.h"

namespace regal {
namespace {

// A descent longer than this is rare, and found piece by piece through visited downsets anyway.
constexpr int32_t kLongestDescent = 64;

// Beyond this many ops the test of a valley costs more than it saves.
constexpr int32_t kWidestValley = 128;

struct Move {
  int64_t after;
  int64_t during;
  int32_t op;
  bool operator<(const Move& other) const {
    return std::tie(after, during, op) < std::tie(other.after, other.during, other.op);
  }
};

// A downset on the current path, and which of its moves are still to be tried.
struct Level {
  int32_t size;       // ops that ran
  int64_t live;       // bytes after them
  size_t first_move;  // where its moves begin in the common stack
};

}  // namespace

void ForcedMoves::run_all(Downset& done, int64_t budget) {
  while (run_one(done, budget)) {
  }
}

bool ForcedMoves::run_one(Downset& done, int64_t budget) {
  for (const int32_t v : done.ready()) {
    ++steps_seen_;
    const auto [during, after] = done.effect_of(v);
    if (after <= done.live_bytes() && during <= budget) {
      done.run(v);
      return true;
    }
  }
  // By position, because run_descent changes the list; it restores it when it fails.
  for (size_t i = 0; i < done.ready().size(); ++i) {
    const int32_t v = done.ready()[i];
    if (done.unlocks_any(v) && run_descent(done, budget, v)) return true;
  }
  return false;
}

// Runs `first`, then ops that it makes ready, as long as needed to come back down to the live bytes of
// the start: "spine" ops v1, v2, ..., each made ready by the one before, and between them ops made
// ready since the last spine op that do not add bytes. No downset in between has fewer live bytes than
// the last one: one that lacks spine op v(j) first holds at least what was live before v(j).
bool ForcedMoves::run_descent(Downset& done, int64_t budget, int32_t first) {
  const int32_t start = done.size();
  const int64_t goal = done.live_bytes();
  ++steps_seen_;
  if (done.effect_of(first).during > budget) return false;
  size_t known = done.ready().size() - 1;  // ops past this place are new since the last spine op
  done.run(first);
  while (done.live_bytes() > goal && done.size() - start < kLongestDescent) {
    Move best{std::numeric_limits<int64_t>::max(), 0, -1};
    steps_seen_ += static_cast<int64_t>(done.ready().size() - known);
    for (size_t i = known; i < done.ready().size(); ++i) {
      const int32_t v = done.ready()[i];
      const auto [during, after] = done.effect_of(v);
      if (during <= budget) best = std::min(best, Move{after, during, v});
    }
    if (best.op < 0) break;
    const bool is_spine = best.after > done.live_bytes();
    if (is_spine) known = done.ready().size() - 1;
    done.run(best.op);
  }
  if (done.live_bytes() <= goal) return true;
  done.undo_to(start);
  return false;
}

OrderWithin order_within(const OrderProblem& problem, const OrderProblem& backward, int64_t budget,
                         Effort& effort, int64_t memory_bytes) {
  OrderWithin result;
  Downset ending(backward);
  ForcedMoves forced_back;
  forced_back.run_all(ending, budget);
  Downset done(problem);
  done.hold_back(ending.order());
  ForcedMoves forced;
  BitsetTable seen(done.bits().size());
  const int64_t most_seen = memory_bytes / static_cast<int64_t>(8 * done.bits().size() + 16);
  std::vector<Level> path;
  std::vector<Move> moves;
  int64_t next_budget = std::numeric_limits<int64_t>::max();
  ValleyTest valley(problem);
  // If the new downset is a valley above earlier ones of the path, all their other moves can go: what
  // cannot be done from here could not be done from there.
  const auto commit = [&] {
    size_t base = path.size();
    while (base > 0 && path[base - 1].live >= done.live_bytes()) --base;
    for (; base < path.size(); base = (base + path.size() + 1) / 2) {
      if (done.size() - path[base].size > kWidestValley) continue;
      if (!valley.is_valley(done, path[base].size)) continue;
      moves.resize(path[base].first_move);
      path.resize(base);
      return;
    }
  };
  const auto enter = [&] {  // false if there is nothing new in this downset
    forced.run_all(done, budget);
    if (done.is_full()) return true;
    if (!seen.insert(done.bits(), done.hash())) return false;
    commit();
    path.push_back({done.size(), done.live_bytes(), moves.size()});
    for (const int32_t v : done.ready()) {
      const auto [during, after] = done.effect_of(v);
      if (during <= budget) {
        moves.push_back({after, during, v});
      } else {
        next_budget = std::min(next_budget, during);
      }
    }
    // The best move last: it is taken off first.
    std::sort(moves.begin() + static_cast<int64_t>(path.back().first_move), moves.end(),
              [](const Move& a, const Move& b) { return b < a; });
    return true;
  };

  enter();
  int64_t steps_seen = 0;
  while (!done.is_full()) {
    if (path.empty()) {
      result.answer = Answer::No;
      result.next_budget = next_budget;
      return result;
    }
    done.undo_to(path.back().size);
    if (moves.size() == path.back().first_move) {
      path.pop_back();
      continue;
    }
    if (!effort.spend(Effort::units(steps_seen)) || seen.size() >= most_seen) return result;
    const int64_t before = forced.steps_seen();
    done.run(moves.back().op);
    moves.pop_back();
    enter();
    steps_seen = forced.steps_seen() - before + static_cast<int64_t>(done.ready().size());
  }
  result.answer = Answer::Yes;
  result.order.assign(done.order().begin(), done.order().end());
  result.order.insert(result.order.end(), ending.order().rbegin(), ending.order().rend());
  return result;
}

}  // namespace regal
