// Random rows for build_problem, legal and spoiled, and what it must say about them.
#include <algorithm>
#include <limits>
#include <set>

#include "fuzz.h"

namespace regal::fuzz {
namespace {

constexpr int32_t kMostOps = 8;
constexpr int32_t kMostStorages = 9;
constexpr int64_t kMostTotal = int64_t{1} << 61;

// `parts` sizes together stay legal.
int64_t random_size(int32_t style, int64_t parts, Dice& dice) {
  switch (style) {
    case 0: return dice.upto(3);
    case 1: return 1;
    case 2: return dice.one_in(2) ? 0 : dice.upto(100);
    case 3: return kMostTotal / std::max<int64_t>(parts, 1) - dice.upto(2);
    default: return int64_t{1} << dice.upto(40);
  }
}

void add_tensor(Rows& rows, int64_t storage, const std::vector<int64_t>& place, Dice& dice) {
  const auto n = static_cast<int64_t>(place.size());
  const int64_t writer = dice.upto(n - 1);
  rows.touches.insert(rows.touches.end(), {writer, storage});
  for (int64_t v = 0; v < n; ++v) {
    if (place[v] <= place[writer] || !dice.one_in(3)) continue;
    rows.touches.insert(rows.touches.end(), {v, storage});
    rows.edges.insert(rows.edges.end(), {writer, v});
  }
}

void add_pairs(Rows& rows, Dice& dice) {
  const std::set<int64_t> inputs(rows.inputs.begin(), rows.inputs.end());
  const std::set<int64_t> outputs(rows.outputs.begin(), rows.outputs.end());
  const int32_t rarity = 1 + dice.upto(3);
  for (size_t i = 0; i < rows.touches.size(); i += 2) {
    for (size_t j = 0; j < rows.touches.size(); j += 2) {
      const int64_t in = rows.touches[i + 1], out = rows.touches[j + 1];
      const bool legal = rows.touches[i] == rows.touches[j] && in != out && !outputs.contains(in) &&
                         !inputs.contains(out) && rows.bytes[in] == rows.bytes[out];
      if (!legal || !dice.one_in(rarity)) continue;
      rows.in_place.insert(rows.in_place.end(), {rows.touches[i], in, out});
    }
  }
}

void repeat_some(std::vector<int64_t>& flat, int64_t columns, Dice& dice) {
  const auto count = static_cast<int64_t>(flat.size()) / columns;
  for (int64_t i = 0; i < count; ++i) {
    if (!dice.one_in(8)) continue;
    for (int64_t column = 0; column < columns; ++column) flat.push_back(flat[i * columns + column]);
  }
}

bool in_range(const std::vector<int64_t>& flat, const std::vector<int64_t>& limits) {
  const size_t whole = flat.size() / limits.size() * limits.size();
  for (size_t i = 0; i < whole; ++i) {
    if (flat[i] < 0 || flat[i] >= limits[i % limits.size()]) return false;
  }
  return true;
}

ProblemFault size_fault(const Rows& rows) {
  std::vector<int64_t> sizes = rows.bytes;
  sizes.insert(sizes.end(), rows.workspace.begin(), rows.workspace.end());
  int64_t total = 0;
  for (const int64_t size : sizes) {
    if (size < 0) return ProblemFault::NegativeSize;
    if (size > kMostTotal - total) return ProblemFault::TooLarge;
    total += size;
  }
  return ProblemFault::None;
}

std::vector<uint8_t> on_cycle(const Rows& rows) {
  const size_t n = rows.workspace.size();
  std::vector<uint8_t> reaches(n * n, 0);
  for (size_t i = 0; i + 1 < rows.edges.size(); i += 2) reaches[rows.edges[i] * n + rows.edges[i + 1]] = 1;
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n * n; ++i) {
      if (reaches[i / n * n + k] && reaches[k * n + i % n]) reaches[i] = 1;
    }
  }
  std::vector<uint8_t> result(n);
  for (size_t v = 0; v < n; ++v) result[v] = reaches[v * n + v];
  return result;
}

bool is_pair(const Rows& rows, const std::vector<int64_t>& row) {
  const auto has = [](const std::vector<int64_t>& ids, int64_t id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  bool touches_in = false, touches_out = false;
  for (size_t i = 0; i + 1 < rows.touches.size(); i += 2) {
    touches_in |= rows.touches[i] == row[0] && rows.touches[i + 1] == row[1];
    touches_out |= rows.touches[i] == row[0] && rows.touches[i + 1] == row[2];
  }
  return touches_in && touches_out && row[1] != row[2] && rows.bytes[row[1]] == rows.bytes[row[2]] &&
         !has(rows.outputs, row[1]) && !has(rows.inputs, row[2]);
}

ProblemFault fault_of(const Rows& rows) {
  const auto n = static_cast<int64_t>(rows.workspace.size());
  const auto s = static_cast<int64_t>(rows.bytes.size());
  const bool are_ids = in_range(rows.edges, {n, n}) && in_range(rows.touches, {n, s}) &&
                       in_range(rows.inputs, {s}) && in_range(rows.outputs, {s});
  if (!are_ids) return ProblemFault::BadIndex;
  if (const ProblemFault fault = size_fault(rows); fault != ProblemFault::None) return fault;
  const std::vector<uint8_t> cyclic = on_cycle(rows);
  if (std::count(cyclic.begin(), cyclic.end(), 1) > 0) return ProblemFault::Cycle;
  for (size_t i = 0; i + 2 < rows.in_place.size(); i += 3) {
    const std::vector<int64_t> row(rows.in_place.begin() + i, rows.in_place.begin() + i + 3);
    if (!in_range(row, {n, s, s})) return ProblemFault::BadIndex;
    if (!is_pair(rows, row)) return ProblemFault::BadInPlace;
  }
  return ProblemFault::None;
}

// Equal branches between one op and another, a few of them changed: what searches treat as twins.
Rows twin_rows(Dice& dice) {
  Rows rows;
  const int64_t copies = 2 + dice.upto(1), length = 1 + dice.upto(copies == 2 ? 2 : 1);
  const int64_t join = copies * length + 1;
  std::vector<int64_t> sizes(length), spaces(length);
  for (int64_t& size : sizes) size = 1 + dice.upto(4);
  for (int64_t& space : spaces) space = dice.one_in(3) ? dice.upto(4) : 0;
  rows.bytes = {1 + dice.upto(3)};
  rows.workspace = {0};
  rows.touches = {0, 0};
  for (int64_t copy = 0; copy < copies; ++copy) {
    int64_t before = 0, read = 0;
    for (int64_t level = 0; level < length; ++level) {
      const auto op = static_cast<int64_t>(rows.workspace.size()), made = static_cast<int64_t>(rows.bytes.size());
      rows.bytes.push_back(sizes[level] + dice.one_in(12));
      rows.workspace.push_back(spaces[level] + dice.one_in(12));
      rows.edges.insert(rows.edges.end(), {before, op});
      rows.touches.insert(rows.touches.end(), {op, read, op, made});
      before = op;
      read = made;
    }
    rows.edges.insert(rows.edges.end(), {before, join});
    rows.touches.insert(rows.touches.end(), {join, read});
    if (dice.one_in(12)) rows.outputs.push_back(read);
  }
  rows.workspace.push_back(dice.upto(2));
  if (dice.one_in(2)) add_pairs(rows, dice);
  return rows;
}

Rows mixed_rows(Dice& dice) {
  Rows rows;
  const int64_t n = dice.one_in(20) ? 0 : 1 + dice.upto(dice.one_in(3) ? 2 : kMostOps - 1);
  const int64_t s = dice.one_in(20) ? 0 : 1 + dice.upto(kMostStorages - 1);
  int32_t style = dice.upto(4);
  for (int64_t i = 0; i < s; ++i) rows.bytes.push_back(random_size(style, n + s, dice));
  if (s > 0 && dice.one_in(16)) {
    rows.bytes.assign(s, 0);  // one storage takes everything
    rows.bytes[dice.upto(s - 1)] = kMostTotal - 3 * kMostOps;
    style = 0;
  }
  for (int64_t v = 0; v < n; ++v) rows.workspace.push_back(dice.one_in(3) ? random_size(style, n + s, dice) : 0);
  // The hidden order that makes the edges acyclic is not the order of the numbers.
  std::vector<int64_t> place(n);
  for (int64_t v = 0; v < n; ++v) {
    place[v] = v;
    if (dice.one_in(2)) std::swap(place[v], place[dice.upto(v)]);
  }
  const int32_t rarity = 2 + dice.upto(6);
  for (int64_t v = 0; v < n; ++v) {
    for (int64_t w = 0; w < n; ++w) {
      if (place[v] < place[w] && dice.one_in(rarity)) rows.edges.insert(rows.edges.end(), {v, w});
    }
  }
  for (int64_t i = 0; i < s; ++i) {
    if (n > 0 && dice.one_in(2)) add_tensor(rows, i, place, dice);
    for (int64_t v = 0; v < n; ++v) {
      if (dice.one_in(6)) rows.touches.insert(rows.touches.end(), {v, i});
    }
    if (dice.one_in(4)) rows.inputs.push_back(i);
    if (dice.one_in(4)) rows.outputs.push_back(i);
  }
  repeat_some(rows.edges, 2, dice);
  repeat_some(rows.touches, 2, dice);
  if (dice.one_in(2)) add_pairs(rows, dice);
  repeat_some(rows.in_place, 3, dice);
  return rows;
}

}  // namespace

Rows legal_rows(Dice& dice) { return dice.one_in(6) ? twin_rows(dice) : mixed_rows(dice); }

void spoil(Rows& rows, Dice& dice) {
  const auto any = [&]() -> int64_t {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    return dice.pick<int64_t>({-1, -kMost - 1, kMost, kMostTotal, int64_t{1} << 31, int64_t{1} << 32, 0, 1, 7, 8, 9});
  };
  const std::vector<std::vector<int64_t>*> parts = {&rows.edges,  &rows.touches, &rows.bytes,   &rows.workspace,
                                                    &rows.inputs, &rows.outputs, &rows.in_place};
  for (int32_t count = dice.upto(2); count >= 0; --count) {
    std::vector<int64_t>& part = *dice.pick(parts);
    if (!part.empty() && !dice.one_in(3)) part[dice.upto(static_cast<int64_t>(part.size()) - 1)] = any();
    else for (int32_t i = dice.upto(3); i >= 0; --i) part.push_back(any());
  }
}

bool judge_rows(const Rows& rows, OrderProblem& problem) {
  const ProblemVerdict verdict = build_problem(rows.view(), problem);
  const ProblemFault fault = fault_of(rows);
  expect(verdict.fault == fault, "build_problem finds the fault");
  if (fault == ProblemFault::Cycle) expect(on_cycle(rows)[verdict.guilty] == 1, "the guilty op is on a cycle");
  if (fault != ProblemFault::None) return false;
  const auto is_inverse = [](const Csr& a, const Csr& b) {
    int64_t found = 0;
    for (int64_t row = 0; row < a.rows(); ++row) {
      for (const int32_t item : a[row]) {
        const auto back = b[item];
        found += std::binary_search(back.begin(), back.end(), static_cast<int32_t>(row));
      }
    }
    return found == static_cast<int64_t>(a.item.size()) && a.item.size() == b.item.size();
  };
  expect(is_inverse(problem.predecessors, problem.successors), "successors are the inverse");
  expect(is_inverse(problem.touched, problem.touchers), "touchers are the inverse");
  expect(problem.in_place.size() == rows.in_place.size() / 3, "every in-place row is kept");
  return true;
}

}  // namespace regal::fuzz
