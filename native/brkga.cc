#include "brkga.h"

#include <algorithm>
#include <limits>

namespace regal {
namespace {

class OrderModel {
 public:
  using Value = int64_t;  // peak bytes

  OrderModel(const CompactProblem& problem, const BrkgaSettings& settings)
      : problem_(problem),
        settings_(settings),
        n_ops_(problem.n_ops()),
        n_seeds_(n_ops_ == 0 ? 0 : static_cast<int32_t>(settings.seed_orders.size() / n_ops_)) {
    const int workers = Genetic<OrderModel>::workers_of(settings.genetic);
    for (int i = 0; i < workers; ++i) decoders_.emplace_back(problem);
  }

  SearchResult run(const std::atomic<bool>& cancelled);

  size_t n_genes() const { return static_cast<size_t>(n_ops_) + 1; }
  int32_t n_given() const { return (settings_.with_neutral ? 1 : 0) + n_seeds_; }
  void give(int32_t i, Genes& genes) const;
  int64_t evaluate(const Genes& genes, int worker) {
    return decoders_[worker].decode(settings_.decoder, {genes.data(), genes.size() - 1}, genes.back());
  }
  static bool is_better(int64_t a, int64_t b) { return a < b; }
  bool is_enough(int64_t peak) const { return peak <= settings_.stop.peak_bytes; }
  bool keep(const Genes& genes, int64_t peak);
  void tidy(Genes&, int64_t) const {}

 private:
  bool evaluate_seeds(const Deadline& deadline, int64_t most);
  bool keep_order(std::span<const int32_t> order, int64_t peak);
  std::span<const int32_t> seed_order(int32_t i) const {
    return settings_.seed_orders.subspan(static_cast<size_t>(i) * n_ops_, n_ops_);
  }

  const CompactProblem& problem_;
  const BrkgaSettings& settings_;
  int32_t n_ops_;
  int32_t n_seeds_;
  std::vector<OrderDecoder> decoders_;  // one per worker
  SearchResult best_;
};

SearchResult OrderModel::run(const std::atomic<bool>& cancelled) {
  const Deadline deadline(settings_.stop.seconds, cancelled);
  const int64_t most = std::max<int64_t>(settings_.stop.evaluations, 1);
  if (!evaluate_seeds(deadline, most)) return best_;
  Genetic genetic(*this, settings_.genetic, deadline, best_.evaluations, most);
  best_.evaluations = genetic.run();
  return best_;
}

bool OrderModel::keep_order(std::span<const int32_t> order, int64_t peak) {
  if (!best_.order.empty() && peak >= best_.peak_bytes) return false;
  best_.order.assign(order.begin(), order.end());
  best_.peak_bytes = peak;
  return true;
}

bool OrderModel::keep(const Genes& genes, int64_t peak) {
  if (!best_.order.empty() && peak >= best_.peak_bytes) return false;
  evaluate(genes, 0);
  return keep_order(decoders_[0].order(), peak);
}

bool OrderModel::evaluate_seeds(const Deadline& deadline, int64_t most) {
  std::vector<int32_t> left;
  for (int32_t i = 0; i < n_seeds_; ++i) {
    if (best_.evaluations == most || (i > 0 && deadline.has_passed())) return false;
    keep_order(seed_order(i), problem_.peak_of(seed_order(i), left));
    ++best_.evaluations;
    if (is_enough(best_.peak_bytes)) return false;
  }
  return best_.evaluations < most;
}

// The plain heuristic, then the seeds: keys that fall evenly along the order, and the strongest
// bend, so that the decoder comes as close to the order as it can.
void OrderModel::give(int32_t i, Genes& genes) const {
  const int32_t seed = i - (settings_.with_neutral ? 1 : 0);
  if (seed < 0) {
    std::fill(genes.begin(), genes.end(), kNeutralKey);
    return;
  }
  const std::span<const int32_t> order = seed_order(seed);
  const uint64_t spacing = (uint64_t{1} << 32) / (order.size() + 1);
  for (size_t step = 0; step < order.size(); ++step) {
    genes[order[step]] = static_cast<uint32_t>((order.size() - step) * spacing);
  }
  genes.back() = std::numeric_limits<uint32_t>::max();
}

}  // namespace

SearchResult run_brkga(const CompactProblem& problem, const BrkgaSettings& settings,
                       const std::atomic<bool>& cancelled) {
  return OrderModel(problem, settings).run(cancelled);
}

}  // namespace regal
