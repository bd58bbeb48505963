#include "fusion_search.h"

#include <algorithm>

namespace regal {
namespace {

class FusionModel {
 public:
  using Value = Score;

  FusionModel(const FusionProblem& problem, const FusionBrkgaSettings& settings) : settings_(settings) {
    const int workers = Genetic<FusionModel>::workers_of(settings.genetic);
    const FusionTask& task = settings.task;
    decoders_.assign(workers, FusionDecoder(problem, task.objective, task.capacity, task.devices));
    wholes_.assign(workers, Genes(settings.task.base.begin(), settings.task.base.end()));
  }

  FusionSearchResult run(const std::atomic<bool>& cancelled) {
    const Deadline deadline(settings_.task.stop.seconds, cancelled);
    Genetic genetic(*this, settings_.genetic, deadline, 0, std::max<int64_t>(settings_.task.stop.evaluations, 1));
    best_.evaluations = genetic.run();
    return std::move(best_);
  }

  size_t n_genes() const { return settings_.task.searched.size(); }
  int32_t n_given() const {
    return 1 + static_cast<int32_t>(settings_.given.size() / settings_.task.base.size());
  }
  void give(int32_t i, Genes& genes) const {
    const size_t size = settings_.task.base.size();
    const auto whole = i == 0 ? settings_.task.base : settings_.given.subspan(static_cast<size_t>(i - 1) * size, size);
    for (size_t g = 0; g < genes.size(); ++g) genes[g] = whole[settings_.task.searched[g]];
  }
  Score evaluate(const Genes& genes, int worker) { return decoders_[worker].decode(whole(genes, worker)); }
  static bool is_better(const Score& a, const Score& b) { return a.is_better_than(b); }
  bool is_enough(const Score& score) const { return settings_.task.stop.is_reached(score); }
  bool keep(const Genes& genes, const Score& score) {
    if (!best_.genes.empty() && !score.is_better_than(best_.score)) return false;
    best_.genes = whole(genes, 0);
    best_.score = score;
    return true;
  }
  void tidy(Genes&, const Score&) const {}

 private:
  const Genes& whole(const Genes& genes, int worker) {
    Genes& whole = wholes_[worker];
    for (size_t g = 0; g < genes.size(); ++g) whole[settings_.task.searched[g]] = genes[g];
    return whole;
  }

  const FusionBrkgaSettings& settings_;
  std::vector<FusionDecoder> decoders_;  // one per worker
  std::vector<Genes> wholes_;            // likewise
  FusionSearchResult best_;
};

}  // namespace

FusionSearchResult run_fusion_brkga(const FusionProblem& problem, const FusionBrkgaSettings& settings,
                                    const std::atomic<bool>& cancelled) {
  return FusionModel(problem, settings).run(cancelled);
}

}  // namespace regal
