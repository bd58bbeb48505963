#include "beam.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "downset.h"
#include "simulate.h"

namespace regal {
namespace {

// An op that can run, and what its step would add to the live bytes.
struct Ready {
  int32_t op;
  int64_t during;
  int64_t after;
};

struct State {
  explicit State(const OrderProblem& problem)
      : memory(problem), is_done((static_cast<size_t>(problem.n_ops) + 63) / 64) {}
  bool has(int32_t op) const { return is_done[op / 64] >> (op % 64) & 1; }
  Ready ready_of(int32_t op) const {
    const auto [during, after] = memory.effect_of(op);
    return {op, during - memory.live_bytes(), after - memory.live_bytes()};
  }

  LiveMemory memory;
  std::vector<uint64_t> is_done;
  std::vector<Ready> ready;
  uint64_t hash = 0;
  int64_t peak = 0;
  int32_t trail = -1;  // the last entry of the trail that led here
};

struct Child {
  int64_t peak;
  int64_t after;
  int64_t during;
  int32_t parent;
  int32_t op;
  uint64_t hash;
  auto key() const { return std::tie(peak, after, during, parent, op); }
  bool operator<(const Child& other) const { return key() < other.key(); }
};

struct Trail {
  int32_t previous;
  int32_t op;
};

// Runs ops in states. A step of another op costs something else afterwards only if a storage that both
// touch has just begun, or is now down to its last toucher.
class Runner {
 public:
  explicit Runner(const OrderProblem& problem) : problem_(problem), changed_(problem.n_ops, 0) {}

  void run(const Child& child, State& state) {
    ++round_;
    for (const int32_t s : problem_.touched[child.op]) {
      const auto row = problem_.touchers[s];
      const int32_t left = state.memory.touchers_left(s);
      if (left != static_cast<int32_t>(row.size()) && left != 2) continue;
      for (const int32_t v : row) changed_[v] = round_;
    }
    state.memory.run(child.op);
    state.is_done[child.op / 64] |= uint64_t{1} << (child.op % 64);
    state.hash = child.hash;
    state.peak = child.peak;
    const auto at = std::find_if(state.ready.begin(), state.ready.end(),
                                 [&](const Ready& ready) { return ready.op == child.op; });
    *at = state.ready.back();
    state.ready.pop_back();
    for (Ready& ready : state.ready) {
      if (changed_[ready.op] == round_) ready = state.ready_of(ready.op);
    }
    for (const int32_t w : problem_.successors[child.op]) {
      const auto before = problem_.predecessors[w];
      if (std::all_of(before.begin(), before.end(), [&](int32_t u) { return state.has(u); })) {
        state.ready.push_back(state.ready_of(w));
      }
    }
  }

 private:
  const OrderProblem& problem_;
  std::vector<int64_t> changed_;  // op -> the round in which its step changed last
  int64_t round_ = 0;
};

// All children of a state, or the one that is forced.
void expand(const State& state, int32_t parent, std::vector<Child>& children) {
  const size_t first = children.size();
  const int64_t live = state.memory.live_bytes();
  for (const Ready& ready : state.ready) {
    const int64_t during = live + ready.during;
    const Child child{std::max(state.peak, during), live + ready.after, during, parent, ready.op,
                      state.hash ^ zobrist(ready.op)};
    if (ready.after <= 0 && during <= state.peak) {
      children.resize(first, child);
      children.push_back(child);
      return;
    }
    children.push_back(child);
  }
}

// The first `width` children by key, each downset once.
void select(std::vector<Child>& children, size_t width) {
  // Twins meet the cut together: leave room for some of them.
  const size_t kept = std::min(children.size(), 4 * width);
  std::partial_sort(children.begin(), children.begin() + static_cast<int64_t>(kept), children.end());
  children.resize(kept);
  std::vector<uint64_t> seen;
  size_t count = 0;
  for (const Child& child : std::vector<Child>(children)) {
    const auto at = std::lower_bound(seen.begin(), seen.end(), child.hash);
    if (count == width || (at != seen.end() && *at == child.hash)) continue;
    seen.insert(at, child.hash);
    children[count++] = child;
  }
  children.resize(count);
}

}  // namespace

std::vector<int32_t> beam_order(const OrderProblem& problem, int32_t width, int64_t floor, Effort& effort) {
  std::vector<State> states(1, State(problem)), next;
  states[0].peak = floor;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    if (problem.predecessors[v].empty()) states[0].ready.push_back(states[0].ready_of(v));
  }
  std::vector<Trail> trail;
  std::vector<Child> children;
  std::vector<int32_t> uses;
  Runner runner(problem);
  for (int32_t step = 0; step < problem.n_ops; ++step) {
    children.clear();
    for (size_t i = 0; i < states.size(); ++i) expand(states[i], static_cast<int32_t>(i), children);
    select(children, static_cast<size_t>(width));
    uses.assign(states.size(), 0);
    for (const Child& child : children) ++uses[child.parent];
    next.clear();
    for (const Child& child : children) {
      if (!effort.spend(Effort::units(static_cast<int64_t>(states[child.parent].ready.size())))) return {};
      // The last child of a state takes it over: most states have one child, and copies are dear.
      State& parent = states[child.parent];
      if (--uses[child.parent] == 0) next.push_back(std::move(parent));
      else next.push_back(parent);
      runner.run(child, next.back());
      trail.push_back({next.back().trail, child.op});
      next.back().trail = static_cast<int32_t>(trail.size()) - 1;
    }
    states.swap(next);
  }
  std::vector<int32_t> order;
  for (int32_t i = states[0].trail; i >= 0; i = trail[i].previous) order.push_back(trail[i].op);
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<int32_t> beam_both_ways(const OrderProblem& problem, const OrderProblem& backward, int32_t width,
                                    int64_t floor, Effort& effort) {
  LiveMemory memory(problem);
  std::vector<int32_t> order = beam_order(problem, width, floor, effort);
  const int64_t peak = peak_of(order, memory);
  if (!order.empty() && peak <= floor) return order;
  std::vector<int32_t> other = beam_order(backward, width, floor, effort);
  std::reverse(other.begin(), other.end());
  if (other.empty() || (!order.empty() && peak <= peak_of(other, memory))) return order;
  return other;
}

}  // namespace regal
