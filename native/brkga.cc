#include "brkga.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rng.h"
#include "threads.h"

namespace regal {
namespace {

using Genes = std::vector<uint32_t>;

constexpr int kMostThreads = 256;

// A chance as the number of 16-bit values below which a draw says yes.
uint32_t chance_of(double probability) {
  return static_cast<uint32_t>(std::lround(std::clamp(probability, 0.0, 1.0) * 65536));
}

double normal(Rng& rng) {
  const double radius = std::sqrt(-2 * std::log1p(-rng.uniform()));
  return radius * std::cos(6.283185307179586 * rng.uniform());
}

// Marsaglia & Tsang 2000.
double gamma(Rng& rng, double shape) {
  const double boost = shape < 1 ? std::pow(1 - rng.uniform(), 1 / shape) : 1;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal(rng);
    const double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    if (v <= 0) continue;
    if (std::log1p(-rng.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v * boost;
  }
}

uint32_t beta_key(Rng& rng, double alpha, double beta) {
  const double a = gamma(rng, alpha);
  const double b = gamma(rng, beta);
  const double share = a + b > 0 ? a / (a + b) : 0.5;
  return static_cast<uint32_t>(std::min(share * 0x1.0p32, 0x1.0p32 - 1));
}

class Brkga {
 public:
  Brkga(const CompactProblem& problem, const BrkgaSettings& settings,
        const std::atomic<bool>& cancelled)
      : problem_(problem),
        settings_(settings),
        n_ops_(problem.n_ops()),
        n_seeds_(n_ops_ == 0 ? 0 : static_cast<int32_t>(settings.seed_orders.size() / n_ops_)),
        deadline_(settings.stop.seconds, cancelled),
        workers_(std::clamp(settings.threads, 1, kMostThreads)) {
    for (int i = 0; i < workers_.count(); ++i) decoders_.emplace_back(problem);
    for (const double bias : settings.gene_bias) chances_.push_back(chance_of(bias));
    if (chances_.empty()) chances_.assign(n_ops_ + 1, chance_of(settings.elite_bias));
  }

  SearchResult run();

 private:
  struct Plan {
    Genes genes;
    int64_t peak = 0;
    int64_t number = 0;  // of its evaluation: breaks ties
    bool is_better_than(const Plan& other) const {
      return peak != other.peak ? peak < other.peak : number < other.number;
    }
  };

  bool evaluate_seeds();
  template <typename Make>
  bool evaluate(std::span<Plan> plans, const Make& make);
  bool fill(std::vector<Plan>& plans);
  bool breed(std::vector<Plan>& plans, std::vector<Plan>& children);
  void draw(Genes& genes, Rng& rng) const;
  void cross(const Plan& elite, const Plan& other, Rng& rng, Genes& child) const;
  void copy_order(std::span<const int32_t> order, Genes& genes) const;
  void keep(std::span<const int32_t> order, int64_t peak);
  std::span<const int32_t> seed_order(int32_t i) const {
    return settings_.seed_orders.subspan(static_cast<size_t>(i) * n_ops_, n_ops_);
  }
  int64_t evaluations_left() const {
    return std::max<int64_t>(settings_.stop.evaluations, 1) - best_.evaluations;
  }

  const CompactProblem& problem_;
  const BrkgaSettings& settings_;
  int32_t n_ops_;
  int32_t n_seeds_;
  Deadline deadline_;
  Workers workers_;
  std::vector<OrderDecoder> decoders_;  // one per worker
  std::vector<uint32_t> chances_;       // per gene: of coming from the elite parent
  SearchResult best_;
  bool is_first_population_ = true;
};

SearchResult Brkga::run() {
  if (!evaluate_seeds()) return best_;
  std::vector<Plan> plans(std::max(2, settings_.population));
  std::vector<Plan> children(plans.size());
  if (!fill(plans)) return best_;
  int64_t stalled = 0;
  while (true) {
    const int64_t before = best_.peak_bytes;
    if (!breed(plans, children)) return best_;
    stalled = best_.peak_bytes < before ? 0 : stalled + 1;
    if (settings_.restart_after == 0 || stalled < settings_.restart_after) continue;
    stalled = 0;
    if (!fill(plans)) return best_;
  }
}

void Brkga::keep(std::span<const int32_t> order, int64_t peak) {
  if (!best_.order.empty() && peak >= best_.peak_bytes) return;
  best_.order.assign(order.begin(), order.end());
  best_.peak_bytes = peak;
}

bool Brkga::evaluate_seeds() {
  std::vector<int32_t> left;
  for (int32_t i = 0; i < n_seeds_; ++i) {
    if (evaluations_left() == 0 || (i > 0 && deadline_.has_passed())) return false;
    keep(seed_order(i), problem_.peak_of(seed_order(i), left));
    ++best_.evaluations;
    if (best_.peak_bytes <= settings_.stop.peak_bytes) return false;
  }
  return true;
}

// Makes and decodes plans[i] as the next evaluations. Returns false when the search is over;
// then only a first part of `plans` was filled, and counted.
template <typename Make>
bool Brkga::evaluate(std::span<Plan> plans, const Make& make) {
  const int64_t base = best_.evaluations;
  const auto count = std::min<int64_t>(plans.size(), evaluations_left());
  // The first plan that reaches the bound ends the search. Plans before it always run, so that
  // the end does not depend on which thread is faster.
  std::atomic<int64_t> reached{count};
  const int64_t done = workers_.run(count, [&](int64_t i, int worker) {
    if (i > reached.load() || (base + i > 0 && deadline_.has_passed())) return false;
    Plan& plan = plans[i];
    plan.number = base + i;
    Rng rng(settings_.seed, plan.number);
    make(i, rng, plan.genes);
    plan.peak = decoders_[worker].decode(settings_.decoder, {plan.genes.data(), plan.genes.size() - 1},
                                         plan.genes.back());
    if (plan.peak <= settings_.stop.peak_bytes) {
      int64_t lowest = reached.load();
      while (i < lowest && !reached.compare_exchange_weak(lowest, i)) {
      }
    }
    return true;
  });
  const int64_t counted = std::min(done, reached.load() + 1);
  const Plan* winner = nullptr;
  for (const Plan& plan : plans.first(counted)) {
    if (winner == nullptr || plan.is_better_than(*winner)) winner = &plan;
  }
  if (winner != nullptr && (best_.order.empty() || winner->peak < best_.peak_bytes)) {
    decoders_[0].decode(settings_.decoder, {winner->genes.data(), winner->genes.size() - 1},
                        winner->genes.back());
    keep(decoders_[0].order(), winner->peak);
  }
  best_.evaluations += counted;
  return counted == static_cast<int64_t>(plans.size()) && evaluations_left() > 0 &&
         best_.peak_bytes > settings_.stop.peak_bytes && n_ops_ > 0;
}

// A whole new population: the seeds as keys and the plain heuristic come first, once.
bool Brkga::fill(std::vector<Plan>& plans) {
  const int32_t copied = is_first_population_ ? n_seeds_ : 0;
  const int32_t neutral = is_first_population_ && settings_.with_neutral ? 1 : 0;
  is_first_population_ = false;
  const bool goes_on = evaluate(plans, [&](int64_t i, Rng& rng, Genes& genes) {
    genes.resize(n_ops_ + 1);
    if (i < neutral) {
      std::fill(genes.begin(), genes.end(), kNeutralKey);
    } else if (i < neutral + copied) {
      copy_order(seed_order(static_cast<int32_t>(i) - neutral), genes);
    } else {
      draw(genes, rng);
    }
  });
  return goes_on;
}

bool Brkga::breed(std::vector<Plan>& plans, std::vector<Plan>& children) {
  const auto size = static_cast<int32_t>(plans.size());
  const int32_t elites = std::clamp(settings_.elites, 1, size - 1);
  const int32_t mutants = std::clamp(settings_.mutants, 0, size - elites);
  std::sort(plans.begin(), plans.end(),
            [](const Plan& a, const Plan& b) { return a.is_better_than(b); });
  const std::span<Plan> made(children.data(), size - elites);
  const bool goes_on = evaluate(made, [&](int64_t i, Rng& rng, Genes& genes) {
    genes.resize(n_ops_ + 1);
    if (i < mutants) {
      draw(genes, rng);
    } else {
      const Plan& elite = plans[rng.below(elites)];
      cross(elite, plans[elites + rng.below(size - elites)], rng, genes);
    }
  });
  for (int32_t i = 0; i < size - elites; ++i) std::swap(plans[elites + i], children[i]);
  return goes_on;
}

void Brkga::draw(Genes& genes, Rng& rng) const {
  if (!settings_.alpha.empty()) {
    for (size_t i = 0; i < genes.size(); ++i) {
      genes[i] = beta_key(rng, settings_.alpha[i], settings_.beta[i]);
    }
    return;
  }
  for (size_t i = 0; i + 1 < genes.size(); i += 2) {
    const uint64_t word = rng.next();
    genes[i] = static_cast<uint32_t>(word);
    genes[i + 1] = static_cast<uint32_t>(word >> 32);
  }
  genes.back() = static_cast<uint32_t>(rng.next());
}

void Brkga::cross(const Plan& elite, const Plan& other, Rng& rng, Genes& child) const {
  const uint32_t* const a = elite.genes.data();
  const uint32_t* const b = other.genes.data();
  const size_t n = child.size();
  for (size_t begin = 0; begin < n; begin += 4) {
    const uint64_t word = rng.next();
    for (size_t i = begin; i < std::min(begin + 4, n); ++i) {
      const bool from_elite = (word >> (16 * (i - begin)) & 0xffff) < chances_[i];
      child[i] = from_elite ? a[i] : b[i];
    }
  }
}

// Keys that fall evenly along the order, and the strongest bend: the decoder comes as close to
// the order as it can.
void Brkga::copy_order(std::span<const int32_t> order, Genes& genes) const {
  const uint64_t spacing = (uint64_t{1} << 32) / (order.size() + 1);
  for (size_t step = 0; step < order.size(); ++step) {
    genes[order[step]] = static_cast<uint32_t>((order.size() - step) * spacing);
  }
  genes.back() = std::numeric_limits<uint32_t>::max();
}

}  // namespace

SearchResult run_brkga(const CompactProblem& problem, const BrkgaSettings& settings,
                       const std::atomic<bool>& cancelled) {
  return Brkga(problem, settings, cancelled).run();
}

}  // namespace regal
