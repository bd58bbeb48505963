#pragma once
#include <cstdint>
#include <vector>

#include "problem.h"

namespace regal {

// Orders that runtimes and compilers use, and what each is here.
enum class Classic {
  FileOrder,     // lowest op first: the file's order wherever that is legal
  Bfs,           // first ready, first run
  Dfs,           // post-order from the sinks, operands in file order (XLA's post-order)
  DfsLarge,      // the same, heaviest subtree first
  DfsSmall,      // the same, op with the fewest bytes first (Inductor's DFS)
  XlaDfs,        // the same, operand with most extra users, then heaviest subtree (XLA's DFS)
  OrtDefault,    // ONNX Runtime's default: reverse DFS, last sink and last operand first
  GreedyMemory,  // least rise of the peak, then least change of the live bytes
  XlaList,       // most bytes freed minus defined, then most users (XLA's list scheduler)
  Safe,          // XlaList's bytes, after ops that raise neither the peak nor the live bytes
  Lpmf,          // Inductor's: what fits under the peak, then least change; blind to in-place
};

// Returns a legal order. Cost: O(touches + edges), times a logarithm where ready ops are ranked.
std::vector<int32_t> classic_order(const OrderProblem& problem, Classic classic);

}  // namespace regal
