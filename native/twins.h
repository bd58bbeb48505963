#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "problem.h"

namespace regal {

// Groups of ops that do the same: units[i][j] is the twin of units[k][j]. Some best order runs every op
// of units[i] before its twin in units[i + 1].
//
// A unit is an op and all ops that only lead to it (heads of an attention layer, stages of a residual
// quantizer). Twin ops have the same workspace, the same predecessors and storages outside their units,
// and matching ones inside; whoever comes after unit b comes after unit a, too.
// Proof that a may go first: at any time let A and B be the positions of a and b that ran. Run A or B as
// a and A and B as b instead: every step stays a step of the same kind, both sets stay closed under
// predecessors, and the live bytes of the private storages, f(A or B) + f(A and B), are no more than
// f(A) + f(B), because live bytes are submodular; steps in between and in-place pairs follow as in
// ForcedMoves. For more than two units the same, position by position, as in a sorting network.
struct TwinGroup {
  std::vector<std::vector<int32_t>> units;
};

// Disjoint groups, found by hashing and then compared in full; large units first.
// Cost: O(n + m) per unit that has a candidate for a twin, bounded by kMostWork in all.
std::vector<TwinGroup> find_twins(const OrderProblem& problem);

// The problem with twins in sequence: same lowest peak, far fewer orders.
OrderProblem with_twins_ordered(const OrderProblem& problem, std::span<const TwinGroup> groups);

// Makes a legal order legal for with_twins_ordered: the steps of twins are handed out in sequence.
// The peak does not rise.
void sort_twins(std::span<const TwinGroup> groups, std::vector<int32_t>& order);

}  // namespace regal
