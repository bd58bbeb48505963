#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "fusion_problem.h"
#include "random_keys.h"

namespace regal {

using Layouts = std::vector<uint8_t>;  // per op

// The layout in which a tensor is made; graph inputs and parameters are contiguous.
inline uint8_t made_in(const FusionProblem& problem, std::span<const uint8_t> layouts, int32_t tensor) {
  const int32_t op = problem.producer[tensor];
  return op < 0 ? uint8_t{0} : layouts[op];
}

// Whether somebody needs the tensor in the layout in which it is not made.
bool needs_copy(const FusionProblem& problem, std::span<const uint8_t> layouts, int32_t tensor);

using LayoutPrices = std::vector<std::array<int64_t, kLayouts>>;  // per op

struct LayoutCut {
  Layouts layouts;
  int64_t cost = 0;  // prices and copies
};

// The layouts whose prices, copies included, add up to the least: exactly, as a minimum cut, where
// a copy is paid once for all its readers. Of equal ones, that with the fewest ops in channels last.
LayoutCut cheapest_layouts(const FusionProblem& problem, const LayoutPrices& prices);

// Every op alone: its time where it is fastest.
LayoutPrices alone_prices(const FusionProblem& problem);

// Keys of sensitive ops become layouts of all ops. A key below a third: contiguous; above two thirds:
// channels last; else that of the cheapest layouts. An agnostic op keeps the cheapest layout while what
// it reads comes as it would there; else it goes with the inputs that take longest to convert.
class LayoutDecoder {
 public:
  explicit LayoutDecoder(const FusionProblem& problem);

  const Layouts& base() const { return base_; }
  void decode(std::span<const uint32_t> keys, Layouts& layouts) const;

 private:
  uint8_t layout_of(int32_t op, const Layouts& layouts) const;

  const FusionProblem* problem_;
  std::vector<int32_t> keyed_;  // the ops that have a key, ascending
  Layouts base_;
};

}  // namespace regal
