#include "twins.h"

#include <algorithm>
#include <map>
#include <utility>

#include "bounds.h"
#include "downset.h"

namespace regal {
namespace {

constexpr size_t kLargestUnit = 64;
constexpr int64_t kMostWork = 20'000'000;  // ops visited; about 0.1 s

using Unit = std::vector<int32_t>;         // its last op first
using Description = std::vector<int64_t>;  // equal for twins, and only for them

uint64_t mix(uint64_t x) {
  return zobrist(static_cast<int32_t>(x)) ^ 3 * zobrist(static_cast<int32_t>(x >> 32));
}

// Equal for twins: what the op and its ancestors look like, whatever their numbers are.
std::vector<uint64_t> looks_of(const OrderProblem& problem) {
  std::vector<uint64_t> looks(problem.n_ops);
  for (const int32_t v : topological_order(problem)) {
    uint64_t look = mix(static_cast<uint64_t>(problem.workspace[v]));
    for (const int32_t s : problem.touched[v]) {
      look += mix(4 * static_cast<uint64_t>(problem.bytes[s]) + 2 * problem.is_input[s] + problem.is_output[s]);
    }
    for (const int32_t u : problem.predecessors[v]) look += mix(looks[u]);
    looks[v] = mix(look);
  }
  return looks;
}

class Finder {
 public:
  explicit Finder(const OrderProblem& problem)
      : problem_(problem),
        looks_(looks_of(problem)),
        position_(problem.n_ops),
        count_(problem.n_ops, 0),
        place_(problem.n_ops, -1),
        is_after_(problem.n_ops, 0),
        is_used_(problem.n_ops, 0) {
    const std::vector<int32_t> order = topological_order(problem);
    for (size_t i = 0; i < order.size(); ++i) position_[order[i]] = static_cast<int32_t>(i);
  }

  std::vector<TwinGroup> run();

 private:
  Unit unit_of(int32_t last);
  Description describe(const Unit& unit);
  std::vector<int32_t> private_storages(const Unit& unit) const;
  void mark_after(int32_t op);
  bool is_before(const Unit& a, const Unit& b);
  int32_t first_use(const Unit& unit) const;
  void add_runs(std::vector<Unit> units, std::vector<TwinGroup>& groups);

  const OrderProblem& problem_;
  std::vector<uint64_t> looks_;
  std::vector<int32_t> position_;  // in some legal order
  std::vector<int32_t> count_;
  std::vector<int32_t> place_;     // op -> its place in the unit at hand, or -1
  std::vector<uint8_t> is_after_;  // op -> whether it follows the unit at hand in every order
  std::vector<uint8_t> is_used_;
  int64_t work_ = 0;
};

// `last` and all ops that lead to nothing else, in a sequence that is the same for twins.
Unit Finder::unit_of(int32_t last) {
  Unit unit{last}, counted;
  for (size_t i = 0; i < unit.size() && unit.size() <= kLargestUnit; ++i) {
    const auto row = problem_.predecessors[unit[i]];
    Unit before(row.begin(), row.end());
    std::sort(before.begin(), before.end(), [&](int32_t a, int32_t b) {
      return std::pair(looks_[a], a) < std::pair(looks_[b], b);
    });
    for (const int32_t u : before) {
      counted.push_back(u);
      if (++count_[u] == static_cast<int32_t>(problem_.successors[u].size())) unit.push_back(u);
    }
  }
  for (const int32_t u : counted) count_[u] = 0;
  work_ += static_cast<int64_t>(counted.size());
  return unit;
}

void Finder::mark_after(int32_t op) {
  std::fill(is_after_.begin(), is_after_.end(), 0);
  Unit queue{op};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const int32_t w : problem_.successors[queue[i]]) {
      if (is_after_[w]) continue;
      is_after_[w] = 1;
      queue.push_back(w);
    }
  }
  work_ += problem_.n_ops / 8 + static_cast<int64_t>(queue.size());
}

// Storages that only the unit at hand and ops after it touch, in a sequence that is the same for twins.
std::vector<int32_t> Finder::private_storages(const Unit& unit) const {
  std::map<int32_t, Description> facts;
  for (const int32_t v : unit) {
    for (const int32_t s : problem_.touched[v]) facts[s];
  }
  std::vector<std::pair<Description, int32_t>> owned;
  for (auto& [s, fact] : facts) {
    const auto row = problem_.touchers[s];
    const bool is_private =
        std::all_of(row.begin(), row.end(), [&](int32_t v) { return place_[v] >= 0 || is_after_[v]; });
    if (!is_private) continue;
    for (const int32_t v : row) {
      if (place_[v] >= 0) fact.push_back(place_[v]);
    }
    std::sort(fact.begin(), fact.end());
    fact.insert(fact.end(), {-1, problem_.bytes[s], problem_.is_input[s], problem_.is_output[s]});
    owned.emplace_back(std::move(fact), s);
  }
  std::sort(owned.begin(), owned.end());
  std::vector<int32_t> storages;
  for (const auto& [fact, s] : owned) storages.push_back(s);
  return storages;
}

// Everything about a unit but the numbers of its own ops and storages.
Description Finder::describe(const Unit& unit) {
  for (size_t i = 0; i < unit.size(); ++i) place_[unit[i]] = static_cast<int32_t>(i);
  mark_after(unit[0]);
  const std::vector<int32_t> owned = private_storages(unit);
  std::map<int32_t, int64_t> name;  // of a private storage: negative
  Description all;
  for (const int32_t s : owned) {
    name[s] = -2 - static_cast<int64_t>(name.size());
    const auto row = problem_.touchers[s];
    const bool leaves = std::any_of(row.begin(), row.end(), [&](int32_t v) { return place_[v] < 0; });
    all.insert(all.end(), {problem_.bytes[s], problem_.is_input[s], problem_.is_output[s], leaves});
  }
  const auto name_of = [&](int32_t s) { return name.contains(s) ? name[s] : s; };
  const auto add_sorted = [&](Description part) {
    std::sort(part.begin(), part.end());
    all.push_back(static_cast<int64_t>(part.size()));
    all.insert(all.end(), part.begin(), part.end());
  };
  for (const int32_t v : unit) {
    Description before, touched;
    for (const int32_t u : problem_.predecessors[v]) before.push_back(place_[u] >= 0 ? -2 - place_[u] : u);
    for (const int32_t s : problem_.touched[v]) touched.push_back(name_of(s));
    all.push_back(problem_.workspace[v]);
    add_sorted(std::move(before));
    add_sorted(std::move(touched));
    all.push_back(problem_.in_place_of[v + 1] - problem_.in_place_of[v]);
    for (int64_t i = problem_.in_place_of[v]; i < problem_.in_place_of[v + 1]; ++i) {
      all.insert(all.end(), {name_of(problem_.in_place[i].in), name_of(problem_.in_place[i].out)});
    }
  }
  for (const int32_t v : unit) place_[v] = -1;
  return all;
}

// Whether all that follows b follows a, too.
bool Finder::is_before(const Unit& a, const Unit& b) {
  mark_after(a[0]);
  const auto row = problem_.successors[b[0]];
  return std::all_of(row.begin(), row.end(), [&](int32_t w) { return is_after_[w]; });
}

int32_t Finder::first_use(const Unit& unit) const {
  int32_t first = problem_.n_ops;
  for (const int32_t w : problem_.successors[unit[0]]) first = std::min(first, position_[w]);
  return first;
}

// Splits units of one description into runs in which each may go before the next.
void Finder::add_runs(std::vector<Unit> units, std::vector<TwinGroup>& groups) {
  std::erase_if(units, [&](const Unit& unit) {
    return std::any_of(unit.begin(), unit.end(), [&](int32_t v) { return is_used_[v]; });
  });
  std::sort(units.begin(), units.end(), [&](const Unit& a, const Unit& b) {
    return std::pair(first_use(a), a[0]) < std::pair(first_use(b), b[0]);
  });
  TwinGroup group;
  const auto close = [&] {
    if (group.units.size() > 1) {
      for (const Unit& unit : group.units) {
        for (const int32_t v : unit) is_used_[v] = 1;
      }
      groups.push_back(std::move(group));
    }
    group = {};
  };
  for (Unit& unit : units) {
    if (!group.units.empty() && !is_before(group.units.back(), unit)) close();
    group.units.push_back(std::move(unit));
  }
  close();
}

std::vector<TwinGroup> Finder::run() {
  std::map<uint64_t, std::vector<int32_t>> alike;
  for (int32_t v = 0; v < problem_.n_ops; ++v) {
    if (!problem_.touched[v].empty()) alike[looks_[v]].push_back(v);
  }
  std::map<std::pair<size_t, Description>, std::vector<Unit>> by_description;
  for (const auto& [look, ops] : alike) {
    if (ops.size() < 2) continue;
    for (const int32_t v : ops) {
      if (work_ > kMostWork) break;
      Unit unit = unit_of(v);
      if (unit.size() > kLargestUnit) continue;
      Description description = describe(unit);
      by_description[{kLargestUnit - unit.size(), std::move(description)}].push_back(std::move(unit));
    }
  }
  std::vector<TwinGroup> groups;
  for (auto& [key, units] : by_description) {
    if (units.size() > 1 && work_ <= kMostWork) add_runs(std::move(units), groups);
  }
  return groups;
}

}  // namespace

std::vector<TwinGroup> find_twins(const OrderProblem& problem) { return Finder(problem).run(); }

OrderProblem with_twins_ordered(const OrderProblem& problem, std::span<const TwinGroup> groups) {
  OrderProblem result = problem;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    for (const int32_t w : problem.successors[v]) edges.emplace_back(v, w);
  }
  for (const TwinGroup& group : groups) {
    for (size_t i = 0; i + 1 < group.units.size(); ++i) {
      for (size_t j = 0; j < group.units[i].size(); ++j) {
        edges.emplace_back(group.units[i][j], group.units[i + 1][j]);
      }
    }
  }
  std::vector<std::pair<int32_t, int32_t>> backward;
  for (const auto& [from, to] : edges) backward.emplace_back(to, from);
  result.predecessors = csr_of(std::move(backward), problem.n_ops);
  result.successors = csr_of(std::move(edges), problem.n_ops);
  return result;
}

void sort_twins(std::span<const TwinGroup> groups, std::vector<int32_t>& order) {
  std::vector<int64_t> step_of(order.size());
  for (size_t i = 0; i < order.size(); ++i) step_of[order[i]] = static_cast<int64_t>(i);
  std::vector<int64_t> steps;
  for (const TwinGroup& group : groups) {
    for (size_t j = 0; j < group.units[0].size(); ++j) {
      steps.clear();
      for (const auto& unit : group.units) steps.push_back(step_of[unit[j]]);
      std::sort(steps.begin(), steps.end());
      for (size_t i = 0; i < steps.size(); ++i) order[steps[i]] = group.units[i][j];
    }
  }
}

}  // namespace regal
