#include "compact.h"

#include <algorithm>

namespace regal {
namespace {

bool runs_before(const OrderProblem& problem, int32_t earlier, int32_t later) {
  const auto row = problem.predecessors[later];
  return std::binary_search(row.begin(), row.end(), earlier);
}

// The toucher that comes first (last) in every legal order by direct edges alone, or -1.
// One pass finds the only candidate: whoever precedes the one held so far takes its place.
template <bool IsFirst>
int32_t fixed_end(const OrderProblem& problem, std::span<const int32_t> touchers) {
  if (touchers.empty()) return -1;
  const auto beats = [&](int32_t a, int32_t b) {
    return IsFirst ? runs_before(problem, a, b) : runs_before(problem, b, a);
  };
  int32_t held = touchers[0];
  for (const int32_t op : touchers) {
    if (op != held && beats(op, held)) held = op;
  }
  for (const int32_t op : touchers) {
    if (op != held && !beats(held, op)) return -1;
  }
  return held;
}

}  // namespace

CompactProblem::CompactProblem(const OrderProblem& problem) : source(&problem) {
  const int32_t n = problem.n_ops;
  rows.assign(n + 1, {});
  waiting.resize(n);
  for (int32_t v = 0; v < n; ++v) {
    rows[v].during = problem.workspace[v];
    rows[v].successors = static_cast<int32_t>(problem.successors.start[v]);
    waiting[v] = static_cast<int32_t>(problem.predecessors[v].size());
  }
  rows[n].successors = static_cast<int32_t>(problem.successors.item.size());
  successors = problem.successors.item;

  std::vector<int32_t> counter_of(problem.n_storages, -1);
  for (int32_t s = 0; s < problem.n_storages; ++s) add_storage(s, counter_of);
  for (int32_t v = 0; v < n; ++v) {
    rows[v].counted = static_cast<int32_t>(counted.size());
    rows[v].pairs = static_cast<int32_t>(pairs.size());
    int64_t bytes = 0;
    bool only_frees = true;
    for (const int32_t s : problem.touched[v]) {
      bytes += problem.bytes[s];
      if (counter_of[s] < 0) continue;
      counted.push_back(counter_of[s]);
      only_frees = only_frees && counters[counter_of[s]].allocated == 0;
    }
    most_touched = std::max(most_touched, bytes);
    add_pairs(v, counter_of);
    rows[v].is_plain = only_frees && rows[v].pairs == static_cast<int32_t>(pairs.size());
  }
  rows[n].counted = static_cast<int32_t>(counted.size());
  rows[n].pairs = static_cast<int32_t>(pairs.size());
}

void CompactProblem::add_storage(int32_t storage, std::vector<int32_t>& counter_of) {
  const OrderProblem& problem = *source;
  const auto touchers = problem.touchers[storage];
  const int64_t bytes = problem.bytes[storage];
  const bool is_input = problem.is_input[storage];
  const bool is_output = problem.is_output[storage];
  if (is_input && (is_output || !touchers.empty())) start_bytes += bytes;
  if (touchers.empty()) return;
  const int32_t first = is_input ? -1 : fixed_end<true>(problem, touchers);
  const int32_t last = is_output ? -1 : fixed_end<false>(problem, touchers);
  if (first >= 0) {
    rows[first].during += bytes;
    rows[first].after += bytes;
  }
  if (last >= 0) rows[last].after -= bytes;
  if ((is_input || first >= 0) && (is_output || last >= 0)) return;

  counter_of[storage] = static_cast<int32_t>(counters.size());
  Counter counter{};
  counter.freed = is_output || last >= 0 ? 0 : bytes;
  counter.allocated = is_input || first >= 0 ? 0 : bytes;
  counter.touchers = static_cast<int32_t>(touchers.size());
  counter.readers = static_cast<int32_t>(readers.size());
  for (const int32_t op : touchers) counter.among ^= op;
  readers.insert(readers.end(), touchers.begin(), touchers.end());
  counters.push_back(counter);
  untouched.push_back(counter.touchers);
  freed.push_back(counter.freed);
}

void CompactProblem::add_pairs(int32_t op, const std::vector<int32_t>& counter_of) {
  const OrderProblem& problem = *source;
  const int64_t begin = problem.in_place_of[op];
  const int64_t end = std::min(problem.in_place_of[op + 1], begin + 64);
  const auto first_pair = static_cast<int32_t>(pairs.size());
  bool is_fixed = true;
  for (int64_t i = begin; i < end; ++i) {
    const InPlace& row = problem.in_place[i];
    Pair pair{problem.bytes[row.in], row.in, row.out, -1, -1};
    const auto in_users = problem.touchers[row.in];
    const auto out_users = problem.touchers[row.out];
    const int32_t in_last = fixed_end<false>(problem, in_users);
    const int32_t out_first = fixed_end<true>(problem, out_users);
    if ((in_last >= 0 && in_last != op) || (out_first >= 0 && out_first != op)) continue;
    // A storage whose end is fixed may still have a counter, for its other end: not needed here.
    if (in_last < 0) pair.in_counter = counter_of[row.in];
    if (out_first < 0) pair.out_counter = counter_of[row.out];
    is_fixed = is_fixed && pair.in_counter < 0 && pair.out_counter < 0;
    pairs.push_back(pair);
  }
  if (!is_fixed || static_cast<int32_t>(pairs.size()) == first_pair) return;
  // No pair depends on the order: settle them now.
  std::vector<Pair> taken;
  for (size_t i = first_pair; i < pairs.size(); ++i) {
    const bool is_free = std::none_of(taken.begin(), taken.end(), [&](const Pair& other) {
      return other.in == pairs[i].in || other.out == pairs[i].out;
    });
    if (!is_free) continue;
    taken.push_back(pairs[i]);
    rows[op].during -= pairs[i].bytes;
  }
  pairs.resize(first_pair);
}

int64_t CompactProblem::peak_of(std::span<const int32_t> order, std::vector<int32_t>& left) const {
  left = untouched;
  int32_t* const counts = left.data();
  int64_t live = start_bytes;
  int64_t peak = 0;
  for (const int32_t op : order) {
    const OpRow& row = rows[op];
    const int32_t end = rows[op + 1].counted;
    if (row.is_plain) {
      peak = std::max(peak, live + row.during);
      live += row.after;
      for (int32_t i = row.counted; i < end; ++i) {
        const int32_t c = counted[i];
        live -= freed[c] & -static_cast<int64_t>(--counts[c] == 0);
      }
      continue;
    }
    const Effect effect = effect_of(op, counts);
    peak = std::max(peak, live + effect.during);
    live += effect.after;
    for (int32_t i = row.counted; i < end; ++i) --counts[counted[i]];
  }
  return peak;
}

}  // namespace regal
