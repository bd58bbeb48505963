#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "batch.h"
#include "random_keys.h"
#include "rng.h"
#include "search.h"
#include "threads.h"

namespace regal {

struct GeneticSettings {
  int32_t population = 100;
  int32_t elites = 20;       // >= 1, survive unchanged
  int32_t mutants = 15;      // new random chromosomes per generation
  double elite_bias = 0.7;   // chance that a gene comes from the elite parent
  int32_t restart_after = 0; // generations without a better plan; 0 = never
  uint64_t seed = 0;
  int32_t threads = 1;
  Proposal proposal;
};

// Biased random-key genetic algorithm (Goncalves & Resende 2011) over whatever `Model` decodes:
//   Value: what a chromosome is worth.
//   size_t n_genes() const;
//   int32_t n_given() const; void give(int32_t i, Genes&) const: start of the first population.
//   Value evaluate(const Genes&, int worker): runs on many threads, one per worker.
//   static bool is_better(const Value&, const Value&);
//   bool is_enough(const Value&) const: nothing better exists, stop.
//   bool keep(const Genes&, const Value&): the best of a batch; returns whether it is better than
//     the best so far.
//   void tidy(Genes&, const Value&) const: may rewrite genes into others of equal worth that are
//     better to cross; keep() comes first.
// Evaluation k depends on the seed and on earlier evaluations alone.
template <typename Model>
class Genetic {
 public:
  using Value = typename Model::Value;

  // `evaluations` were counted before; the search goes on until `most` are.
  Genetic(Model& model, const GeneticSettings& settings, const Deadline& deadline,
          int64_t evaluations, int64_t most)
      : model_(model),
        settings_(settings),
        deadline_(deadline),
        workers_(workers_of(settings)),
        draws_(settings.proposal),
        evaluations_(evaluations),
        most_(most) {
    for (const double bias : settings.proposal.gene_bias) chances_.push_back(chance_of(bias));
    if (chances_.empty()) chances_.assign(model.n_genes(), chance_of(settings.elite_bias));
  }

  static int workers_of(const GeneticSettings& settings) {
    return std::clamp(settings.threads, 1, kMostThreads);
  }

  // Returns the evaluations counted in all.
  int64_t run() {
    std::vector<Plan> plans(std::max(2, settings_.population));
    std::vector<Plan> children(plans.size());
    if (!fill(plans)) return evaluations_;
    int64_t stalled = 0;
    while (true) {
      is_improved_ = false;
      if (!breed(plans, children)) return evaluations_;
      stalled = is_improved_ ? 0 : stalled + 1;
      if (settings_.restart_after == 0 || stalled < settings_.restart_after) continue;
      stalled = 0;
      if (!fill(plans)) return evaluations_;
    }
  }

 private:
  static constexpr int kMostThreads = 256;

  struct Plan {
    Genes genes;
    Value value{};
    int64_t number = 0;  // of its evaluation: breaks ties
    bool is_better_than(const Plan& other) const {
      if (Model::is_better(value, other.value)) return true;
      return !Model::is_better(other.value, value) && number < other.number;
    }
  };

  template <typename Make>
  bool evaluate(std::span<Plan> plans, const Make& make);
  bool fill(std::vector<Plan>& plans);
  bool breed(std::vector<Plan>& plans, std::vector<Plan>& children);

  Model& model_;
  const GeneticSettings& settings_;
  const Deadline& deadline_;
  Workers workers_;
  KeyDraws draws_;
  std::vector<uint32_t> chances_;  // per gene: of coming from the elite parent
  int64_t evaluations_;
  int64_t most_;
  bool is_first_population_ = true;
  bool is_improved_ = false;
  bool is_reached_ = false;
};

// Makes and decodes plans[i] as the next evaluations. Returns false when the search is over;
// then only a first part of `plans` was filled, and counted.
template <typename Model>
template <typename Make>
bool Genetic<Model>::evaluate(std::span<Plan> plans, const Make& make) {
  const int64_t base = evaluations_;
  const auto count = std::min<int64_t>(plans.size(), most_ - base);
  const int64_t counted = run_numbered(workers_, deadline_, base, count, [&](int64_t i, int worker) {
    Plan& plan = plans[i];
    plan.number = base + i;
    Rng rng(settings_.seed, plan.number);
    plan.genes.resize(model_.n_genes());
    make(i, rng, plan.genes);
    plan.value = model_.evaluate(plan.genes, worker);
    return model_.is_enough(plan.value);
  });
  const Plan* winner = nullptr;
  for (const Plan& plan : plans.first(counted)) {
    if (winner == nullptr || plan.is_better_than(*winner)) winner = &plan;
  }
  if (winner != nullptr) {
    is_improved_ |= model_.keep(winner->genes, winner->value);
    is_reached_ |= model_.is_enough(winner->value);
  }
  for (Plan& plan : plans.first(counted)) model_.tidy(plan.genes, plan.value);
  evaluations_ += counted;
  return counted == static_cast<int64_t>(plans.size()) && evaluations_ < most_ && !is_reached_ &&
         model_.n_genes() > 1;
}

// A whole new population; what the model gives comes first, once.
template <typename Model>
bool Genetic<Model>::fill(std::vector<Plan>& plans) {
  const int32_t given = is_first_population_ ? model_.n_given() : 0;
  is_first_population_ = false;
  return evaluate(plans, [&](int64_t i, Rng& rng, Genes& genes) {
    if (i < given) {
      model_.give(static_cast<int32_t>(i), genes);
    } else {
      draws_.fill(rng, genes);
    }
  });
}

template <typename Model>
bool Genetic<Model>::breed(std::vector<Plan>& plans, std::vector<Plan>& children) {
  const auto size = static_cast<int32_t>(plans.size());
  const int32_t elites = std::clamp(settings_.elites, 1, size - 1);
  const int32_t mutants = std::clamp(settings_.mutants, 0, size - elites);
  std::sort(plans.begin(), plans.end(),
            [](const Plan& a, const Plan& b) { return a.is_better_than(b); });
  const std::span<Plan> made(children.data(), size - elites);
  const bool goes_on = evaluate(made, [&](int64_t i, Rng& rng, Genes& genes) {
    if (i < mutants) {
      draws_.fill(rng, genes);
    } else {
      const Plan& elite = plans[rng.below(elites)];
      cross_genes(rng, chances_, elite.genes, plans[elites + rng.below(size - elites)].genes, genes);
    }
  });
  for (int32_t i = 0; i < size - elites; ++i) std::swap(plans[elites + i], children[i]);
  return goes_on;
}

}  // namespace regal
