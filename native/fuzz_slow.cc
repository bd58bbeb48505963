// The definitions, as slow and plain as they can be told: the oracle of every search.
#include <algorithm>
#include <limits>

#include "fuzz.h"

namespace regal::fuzz {
namespace {

bool has(uint32_t set, int32_t op) { return set >> op & 1; }

bool touches(const OrderProblem& p, int32_t op, int32_t storage) {
  const auto row = p.touched[op];
  return std::find(row.begin(), row.end(), storage) != row.end();
}

int32_t count_ran(const OrderProblem& p, uint32_t ran, int32_t storage) {
  int32_t count = 0;
  for (int32_t v = 0; v < p.n_ops; ++v) count += has(ran, v) && touches(p, v, storage);
  return count;
}

int32_t count_touchers(const OrderProblem& p, int32_t storage) {
  return count_ran(p, (uint32_t{1} << p.n_ops) - 1, storage);
}

}  // namespace

bool Slow::is_legal(std::span<const int64_t> order) const {
  uint32_t ran = 0;
  for (const int64_t op : order) {
    if (op < 0 || op >= p->n_ops || !can_run(ran, static_cast<int32_t>(op))) return false;
    ran |= uint32_t{1} << op;
  }
  return ran == (uint32_t{1} << p->n_ops) - 1;
}

bool Slow::can_run(uint32_t ran, int32_t op) const {
  if (has(ran, op)) return false;
  const auto before = p->predecessors[op];
  return std::all_of(before.begin(), before.end(), [&](int32_t u) { return has(ran, u); });
}

bool Slow::meets(uint32_t ran, const InPlace& pair) const {
  return count_ran(*p, ran, pair.out) == 0 && count_ran(*p, ran, pair.in) + 1 == count_touchers(*p, pair.in);
}

std::vector<InPlace> Slow::pairs_at(uint32_t ran, int32_t op) const {
  std::vector<InPlace> taken;
  int64_t place = 0;
  for (const InPlace& pair : p->in_place) {
    if (pair.op != op || place++ >= 64 || !meets(ran, pair)) continue;
    const bool is_free = std::none_of(taken.begin(), taken.end(), [&](const InPlace& other) {
      return other.in == pair.in || other.out == pair.out;
    });
    if (is_free) taken.push_back(pair);
  }
  return taken;
}

int64_t Slow::during(uint32_t ran, int32_t op, const std::vector<InPlace>& pairs) const {
  int64_t total = p->workspace[op];
  for (int32_t s = 0; s < p->n_storages; ++s) {
    const int32_t done = count_ran(*p, ran, s), all = count_touchers(*p, s);
    const bool begun = p->is_input[s] || done > 0 || touches(*p, op, s);
    const bool needed = p->is_output[s] || done < all;
    if (begun && needed && (all > 0 || p->is_input[s])) total += p->bytes[s];
  }
  for (const InPlace& pair : pairs) total -= p->bytes[pair.in];
  return total;
}

int64_t Slow::live_after(uint32_t ran) const {
  int64_t total = 0;
  for (int32_t s = 0; s < p->n_storages; ++s) {
    const int32_t done = count_ran(*p, ran, s), all = count_touchers(*p, s);
    if ((p->is_input[s] || done > 0) && (p->is_output[s] || done < all)) total += p->bytes[s];
  }
  return total;
}

int64_t Slow::peak(std::span<const int32_t> order, bool in_place) const {
  int64_t highest = 0;
  uint32_t ran = 0;
  for (const int32_t op : order) {
    highest = std::max(highest, during(ran, op, in_place ? pairs_at(ran, op) : std::vector<InPlace>{}));
    ran |= uint32_t{1} << op;
  }
  return highest;
}

int64_t Slow::best() const {
  const uint32_t all = (uint32_t{1} << p->n_ops) - 1;
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> lowest(size_t{all} + 1, kNever);
  lowest[0] = 0;
  for (uint32_t ran = 0; ran < all; ++ran) {
    if (lowest[ran] == kNever) continue;
    for (int32_t v = 0; v < p->n_ops; ++v) {
      if (!can_run(ran, v)) continue;
      int64_t& next = lowest[ran | uint32_t{1} << v];
      next = std::min(next, std::max(lowest[ran], during(ran, v, pairs_at(ran, v))));
    }
  }
  return lowest[all];
}

std::vector<int32_t> random_order(const OrderProblem& problem, Dice& dice) {
  const Slow slow(problem);
  std::vector<int32_t> order;
  uint32_t ran = 0;
  while (static_cast<int32_t>(order.size()) < problem.n_ops) {
    std::vector<int32_t> ready;
    for (int32_t v = 0; v < problem.n_ops; ++v) {
      if (slow.can_run(ran, v)) ready.push_back(v);
    }
    order.push_back(dice.pick(ready));
    ran |= uint32_t{1} << order.back();
  }
  return order;
}

std::vector<int64_t> wide(std::span<const int32_t> order) { return {order.begin(), order.end()}; }

}  // namespace regal::fuzz
