#include "fusion_layout.h"

#include <algorithm>

#include "flow.h"

namespace regal {
namespace {

constexpr int32_t kSource = 0;  // its side of the cut is channels last
constexpr int32_t kSink = 1;

// min over devices
int64_t least(std::span<const int64_t> row) { return *std::min_element(row.begin(), row.end()); }

// Adds what a copy of `tensor` costs: if its maker is contiguous and any reader is not, or the other
// way round, one node more collects "any reader".
class CutBuilder {
 public:
  CutBuilder(const FusionProblem& problem, const LayoutPrices& prices) : p_(problem), prices_(prices) {}

  LayoutCut run() {
    int32_t nodes = 2 + p_.n_ops;
    for (int32_t t = 0; t < p_.n_tensors; ++t) nodes += p_.has_layouts[t] ? 2 : 0;
    flow_.clear(nodes);
    next_ = 2 + p_.n_ops;
    int64_t cost = 0;
    for (int32_t v = 0; v < p_.n_ops; ++v) cost += add_op(v);
    for (int32_t t = 0; t < p_.n_tensors; ++t) {
      if (p_.has_layouts[t]) add_tensor(t);
    }
    LayoutCut cut;
    cut.cost = cost + flow_.run();
    for (int32_t v = 0; v < p_.n_ops; ++v) cut.layouts.push_back(flow_.is_with_source(node_of(v)));
    return cut;
  }

 private:
  static int32_t node_of(int32_t op) { return 2 + op; }

  // What both layouts cost anyway is taken out of the flow.
  int64_t add_op(int32_t op) {
    const auto [contiguous, last] = prices_[op];
    if (p_.rule[op] == LayoutRule::Fixed) {
      flow_.add_arc(node_of(op), kSink, Flow::kUncuttable);
      return contiguous;
    }
    const int64_t common = std::min(contiguous, last);
    if (contiguous > common) flow_.add_arc(kSource, node_of(op), contiguous - common);
    if (last > common) flow_.add_arc(node_of(op), kSink, last - common);
    return common;
  }

  void add_tensor(int32_t tensor) {
    const int32_t op = p_.producer[tensor];
    const int32_t maker = op < 0 ? kSink : node_of(op);
    const int64_t cost = least({p_.convert.data() + p_.at(tensor, 0), static_cast<size_t>(p_.n_devices)});
    users_.clear();
    for (const int32_t reader : p_.readers[tensor]) users_.push_back(node_of(reader));
    if (p_.output_layout[tensor] == 0) users_.push_back(kSink);
    if (p_.output_layout[tensor] == 1) users_.push_back(kSource);
    if (users_.size() == 1) {
      flow_.add_arc(users_[0], maker, cost);
      flow_.add_arc(maker, users_[0], cost);
      return;
    }
    const int32_t any_last = next_++, any_contiguous = next_++;
    for (const int32_t user : users_) {
      flow_.add_arc(user, any_last, Flow::kUncuttable);
      flow_.add_arc(any_contiguous, user, Flow::kUncuttable);
    }
    flow_.add_arc(any_last, maker, cost);
    flow_.add_arc(maker, any_contiguous, cost);
  }

  const FusionProblem& p_;
  const LayoutPrices& prices_;
  Flow flow_;
  int32_t next_ = 0;
  std::vector<int32_t> users_;
};

}  // namespace

bool needs_copy(const FusionProblem& problem, std::span<const uint8_t> layouts, int32_t tensor) {
  if (!problem.has_layouts[tensor]) return false;
  const uint8_t made = made_in(problem, layouts, tensor);
  const int8_t wanted = problem.output_layout[tensor];
  if (wanted >= 0 && wanted != made) return true;
  const auto readers = problem.readers[tensor];
  return std::any_of(readers.begin(), readers.end(), [&](int32_t op) { return layouts[op] != made; });
}

LayoutCut cheapest_layouts(const FusionProblem& problem, const LayoutPrices& prices) {
  return CutBuilder(problem, prices).run();
}

LayoutPrices alone_prices(const FusionProblem& problem) {
  LayoutPrices prices(problem.n_ops, {INT64_MAX, INT64_MAX});
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    for (int32_t d = 0; d < problem.n_devices; ++d) {
      const auto& row = problem.alone[problem.at(v, d)];
      if (row[0] == kForbidden) continue;
      for (int l = 0; l < kLayouts; ++l) prices[v][l] = std::min(prices[v][l], row[l]);
    }
  }
  return prices;
}

LayoutDecoder::LayoutDecoder(const FusionProblem& problem) : problem_(&problem) {
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    if (problem.rule[v] == LayoutRule::Sensitive) keyed_.push_back(v);
  }
  base_ = cheapest_layouts(problem, alone_prices(problem)).layouts;
}

void LayoutDecoder::decode(std::span<const uint32_t> keys, Layouts& layouts) const {
  layouts = base_;
  bool is_base = true;
  for (size_t i = 0; i < keyed_.size(); ++i) {
    const auto layout = static_cast<uint8_t>(keys[i] > 2 * (UINT32_MAX / 3));
    if (!layout && keys[i] >= UINT32_MAX / 3) continue;
    is_base = is_base && layout == base_[keyed_[i]];
    layouts[keyed_[i]] = layout;
  }
  if (is_base) return;
  for (const int32_t v : problem_->order) {
    if (problem_->rule[v] == LayoutRule::Agnostic) layouts[v] = layout_of(v, layouts);
  }
}

uint8_t LayoutDecoder::layout_of(int32_t op, const Layouts& layouts) const {
  bool is_as_before = true;
  int64_t votes = 0;  // ns to convert: of inputs made in channels last, less those made contiguous
  for (const int32_t t : problem_->reads[op]) {
    if (!problem_->has_layouts[t]) continue;
    const uint8_t made = made_in(*problem_, layouts, t);
    is_as_before = is_as_before && made == made_in(*problem_, base_, t);
    const int64_t cost = problem_->convert[problem_->at(t, 0)];
    votes += made ? cost : -cost;
  }
  if (is_as_before || votes == 0) return base_[op];
  return votes > 0;
}

}  // namespace regal
