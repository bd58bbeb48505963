// Local search over the keys of the fusion decoder.
#include <algorithm>

#include "fusion_search.h"

namespace regal {
namespace {

class Climber {
 public:
  Climber(const FusionProblem& problem, const FusionTask& task, uint64_t seed)
      : task_(task),
        decoder_(problem, task.objective, task.capacity, task.devices),
        genes_(task.base.begin(), task.base.end()),
        rng_(seed, 0) {
    const FusionGenes& layout = decoder_.layout();
    for (const int64_t gene : task.searched) {
      auto& head = gene < layout.layout ? fusion_ : gene < layout.priority ? layout_ : order_;
      head.push_back(gene);
    }
  }

  FusionSearchResult run(const std::atomic<bool>& cancelled) {
    const Deadline deadline(task_.stop.seconds, cancelled);
    FusionSearchResult best{genes_, decoder_.decode(genes_), 1};
    const int64_t heads = (fusion_.empty() ? 0 : 1) + (layout_.empty() ? 0 : 1) + (order_.empty() ? 0 : 1);
    while (heads > 0 && best.evaluations < task_.stop.evaluations && !task_.stop.is_reached(best.score) &&
           !deadline.has_passed()) {
      changed_.clear();
      move();
      const Score score = decoder_.decode(genes_);
      ++best.evaluations;
      if (best.score.is_better_than(score)) {
        for (size_t i = changed_.size(); i-- > 0;) genes_[changed_[i].first] = changed_[i].second;
      } else {
        best.score = score;  // equal is taken too: plateaus are wide
        best.genes = genes_;
      }
    }
    return best;
  }

 private:
  void set(int64_t gene, uint32_t key) {
    changed_.emplace_back(gene, genes_[gene]);
    genes_[gene] = key;
  }

  uint32_t key() { return static_cast<uint32_t>(rng_.next() >> 32); }

  void move() {
    while (true) {
      const uint32_t which = rng_.below(3);
      if (which == 0 && !layout_.empty()) return lay_out();
      if (which == 1 && !fusion_.empty()) return fuse();
      if (which == 2 && !order_.empty()) return set(order_[rng_.below(static_cast<uint32_t>(order_.size()))], key());
      if (which == 2 && !fusion_.empty()) return fuse();
    }
  }

  // One layout for a stretch of sensitive ops; half of the stretches are single ops.
  void lay_out() {
    static constexpr uint32_t kKeys[] = {0, kNeutralKey, UINT32_MAX};
    const auto count = static_cast<uint32_t>(layout_.size());
    const uint32_t first = rng_.below(count);
    uint32_t length = 1;
    while (rng_.below(2) == 0 && length < count) length *= 2;
    const uint32_t chosen = kKeys[rng_.below(3)];
    for (uint32_t i = first; i < std::min(first + length, count); ++i) set(layout_[i], chosen);
  }

  // Off, as usual, forced, or another place in the sequence.
  void fuse() {
    const int64_t gene = fusion_[rng_.below(static_cast<uint32_t>(fusion_.size()))];
    switch (rng_.below(5)) {
      case 0: return set(gene, 0);
      case 1: return set(gene, kNeutralKey);
      case 2: return set(gene, UINT32_MAX);
      default: return set(gene, key());
    }
  }

  const FusionTask& task_;
  FusionDecoder decoder_;
  Genes genes_;
  Rng rng_;
  std::vector<int64_t> fusion_, layout_, order_;  // searched genes per head
  std::vector<std::pair<int64_t, uint32_t>> changed_;  // what they were
};

}  // namespace

FusionSearchResult run_fusion_local(const FusionProblem& problem, const FusionTask& task, uint64_t seed,
                                    const std::atomic<bool>& cancelled) {
  return Climber(problem, task, seed).run(cancelled);
}

}  // namespace regal
