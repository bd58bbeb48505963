#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "problem.h"
#include "rng.h"

// The random driver of the kernel, built with REGAL_CHECKED: every entry point on tiny problems full
// of edge cases, judged by oracles that are slow, obvious and share no code with what they judge.
namespace regal::fuzz {

// Random choices of one case.
class Dice {
 public:
  explicit Dice(uint64_t number) : rng_(number, 0) {}
  // In [0, most], both included.
  int32_t upto(int64_t most) { return static_cast<int32_t>(rng_.below(static_cast<uint32_t>(most) + 1)); }
  bool one_in(int32_t n) { return upto(n - 1) == 0; }
  uint64_t word() { return rng_.next(); }
  template <typename T>
  T pick(const std::vector<T>& values) {
    return values[upto(static_cast<int64_t>(values.size()) - 1)];
  }

 private:
  Rng rng_;
};

// What a caller of build_problem hands over.
struct Rows {
  std::vector<int64_t> edges, touches, bytes, workspace, inputs, outputs, in_place;
  OrderInput view() const { return {edges, touches, bytes, workspace, inputs, outputs, in_place}; }
};

// Prints the claim and the case and ends the process with code 1, unless `holds`.
void expect(bool holds, const char* claim);

Rows legal_rows(Dice& dice);
void spoil(Rows& rows, Dice& dice);

// Builds the problem and judges the verdict. False if the rows are not legal.
bool judge_rows(const Rows& rows, OrderProblem& problem);

// The definitions, step by step; `best` looks at all sets of ops that may have run.
struct Slow {
  explicit Slow(const OrderProblem& problem) : p(&problem) {}
  bool is_legal(std::span<const int64_t> order) const;
  bool can_run(uint32_t ran, int32_t op) const;
  bool meets(uint32_t ran, const InPlace& pair) const;
  std::vector<InPlace> pairs_at(uint32_t ran, int32_t op) const;
  int64_t during(uint32_t ran, int32_t op, const std::vector<InPlace>& pairs) const;
  int64_t live_after(uint32_t ran) const;
  int64_t peak(std::span<const int32_t> order, bool in_place = true) const;
  int64_t best() const;

  const OrderProblem* p;
};

std::vector<int32_t> random_order(const OrderProblem& problem, Dice& dice);
std::vector<int64_t> wide(std::span<const int32_t> order);

void judge_simulation(const OrderProblem& problem, Dice& dice);
void judge_checker(const OrderProblem& problem, Dice& dice);
void judge_sets(Dice& dice);
void judge_searches(const OrderProblem& problem, Dice& dice);
void judge_exact(const OrderProblem& problem, Dice& dice);
void judge_offset_checker(Dice& dice);
void judge_offsets(Dice& dice);

}  // namespace regal::fuzz
