#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "effort.h"
#include "problem.h"

namespace regal {

struct ExactOrder {
  std::vector<int32_t> order;
  int64_t peak_bytes = 0;
  int64_t lower_bound = 0;  // proven, also when the search did not finish
};

// The order of lowest peak, with its proof: splits the problem where every order must split, then asks
// `order_within` for budgets between the proven bound and the best known order of each piece.
// Never returns an order worse than `hint` (a legal order; empty: none).
// Spends one unit per visited downset; stops early, with what is known then, when `effort` is gone.
ExactOrder solve_exact(const OrderProblem& problem, std::span<const int32_t> hint, Effort& effort);

}  // namespace regal
