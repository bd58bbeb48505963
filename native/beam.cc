#include "beam.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "downset.h"
#include "simulate.h"

namespace regal {
namespace {

struct State {
  explicit State(const OrderProblem& problem)
      : memory(problem), is_done((static_cast<size_t>(problem.n_ops) + 63) / 64) {}
  bool has(int32_t op) const { return is_done[op / 64] >> (op % 64) & 1; }

  LiveMemory memory;
  std::vector<uint64_t> is_done;
  std::vector<int32_t> ready;
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

void run(const OrderProblem& problem, const Child& child, State& state) {
  state.memory.run(child.op);
  state.is_done[child.op / 64] |= uint64_t{1} << (child.op % 64);
  state.hash = child.hash;
  state.peak = child.peak;
  *std::find(state.ready.begin(), state.ready.end(), child.op) = state.ready.back();
  state.ready.pop_back();
  for (const int32_t w : problem.successors[child.op]) {
    const auto before = problem.predecessors[w];
    if (std::all_of(before.begin(), before.end(), [&](int32_t u) { return state.has(u); })) {
      state.ready.push_back(w);
    }
  }
}

// All children of a state, or the one that is forced.
void expand(const State& state, int32_t parent, std::vector<Child>& children) {
  const size_t first = children.size();
  for (const int32_t v : state.ready) {
    const auto [during, after] = state.memory.effect_of(v);
    const Child child{std::max(state.peak, during), after, during, parent, v, state.hash ^ zobrist(v)};
    if (after <= state.memory.live_bytes() && during <= state.peak) {
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
    if (problem.predecessors[v].empty()) states[0].ready.push_back(v);
  }
  std::vector<Trail> trail;
  std::vector<Child> children;
  std::vector<int32_t> uses;
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
      run(problem, child, next.back());
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

}  // namespace regal
