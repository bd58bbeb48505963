#include "device_es.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "batch.h"
#include "device_decode.h"
#include "random_keys.h"
#include "rng.h"
#include "search.h"
#include "threads.h"

namespace regal {
namespace {

constexpr int kMostThreads = 256;
// Weights for the gene that says at which level Inherit leaves a device: shares 0, 1/8, ..., 1.
constexpr std::array kLevels{0.0, -0.26, 0.26, -0.55, 0.55, -0.97, 0.97, -3.0, 3.0};

struct Sample {
  std::vector<double> draw;  // from the mean, in units of step * deviation
  int64_t start = -1;        // instead of it: a row of starts_
  Score score;
  int64_t number = 0;
  bool is_better_than(const Sample& other) const {
    if (score.is_better_than(other.score)) return true;
    return !other.score.is_better_than(score) && number < other.number;
  }
};

class FeatureSearch {
 public:
  FeatureSearch(const CompactDevices& problem, const DeviceEsSettings& settings,
                const std::atomic<bool>& cancelled)
      : settings_(settings),
        keys_(problem, settings.decoder, settings.extra),
        deadline_(settings.stop.seconds, cancelled),
        workers_(std::clamp(settings.threads, 1, kMostThreads)),
        genes_(workers_.count()),
        weights_(workers_.count()),
        deviation_(settings.deviation.begin(), settings.deviation.end()),
        step_(settings.step) {
    const DeviceProblem& source = *problem.source;
    const auto n_extra = static_cast<int64_t>(settings.extra.size()) / std::max(source.n_ops, 1);
    mean_.assign(FeatureKeys::n_weights(source, n_extra), 0.0);
    if (deviation_.empty()) deviation_ = FeatureKeys::usual_deviation(source, n_extra);
    path_.assign(mean_.size(), 0.0);
    for (int i = 0; i < workers_.count(); ++i) {
      decoders_.emplace_back(problem, settings.objective, settings.decoder);
    }
    if (settings.starts.empty()) {
      add_levels();
    } else {
      for (size_t i = 0; i < settings.starts.size(); i += mean_.size()) {
        const auto row = settings.starts.subspan(i, mean_.size());
        starts_.emplace_back(row.begin(), row.end());
      }
    }
    dimensions_ = static_cast<double>(
        std::ranges::count_if(deviation_, [](double s) { return s > 0; }));
    choose_rates();
  }

  DeviceEsResult run();

 private:
  void choose_rates();
  void add_levels();
  bool evaluate_starts();
  bool evaluate(std::span<Sample> samples, bool is_drawn);
  void draw(Sample& sample) const;
  void weights_of(const Sample& sample, std::vector<double>& weights) const;
  void keep(const Sample& sample);
  void adapt(std::vector<Sample>& samples);

  const DeviceEsSettings& settings_;
  FeatureKeys keys_;
  Deadline deadline_;
  Workers workers_;
  std::vector<ScheduleDecoder> decoders_;
  std::vector<Genes> genes_;
  std::vector<std::vector<double>> weights_;
  std::vector<double> mean_;
  std::vector<double> deviation_;
  std::vector<double> path_;
  std::vector<std::vector<double>> starts_;
  double step_;
  double dimensions_ = 0;
  int32_t population_ = 0;
  std::vector<double> shares_;  // of the better half in the new mean
  double effective_ = 0;        // samples that the shares amount to
  double path_rate_ = 0;
  double damping_ = 0;
  int64_t generation_ = 0;
  std::vector<std::pair<Score, std::vector<double>>> kept_;  // weights, best first
  DeviceEsResult result_;
};

// Hansen's usual rates; see "The CMA evolution strategy: a tutorial", 2016.
void FeatureSearch::choose_rates() {
  const double n = std::max(dimensions_, 1.0);
  population_ = settings_.population > 0 ? settings_.population : static_cast<int32_t>(4 + 3 * std::log(n));
  population_ = std::max(2, population_ + population_ % 2);
  const int32_t parents = population_ / 2;
  for (int32_t i = 0; i < parents; ++i) shares_.push_back(std::log(parents + 0.5) - std::log(i + 1.0));
  const double total = std::accumulate(shares_.begin(), shares_.end(), 0.0);
  double squares = 0;
  for (double& share : shares_) {
    share /= total;
    squares += share * share;
  }
  effective_ = 1 / squares;
  path_rate_ = (effective_ + 2) / (n + effective_ + 5);
  damping_ = 1 + 2 * std::max(0.0, std::sqrt((effective_ - 1) / (n + 1)) - 1) + path_rate_;
}

// A pair of samples lies on both sides of the mean.
void FeatureSearch::draw(Sample& sample) const {
  const bool is_mirror = sample.number % 2 == 0;  // evaluation 0 is the mean
  Rng rng(settings_.seed, sample.number - (is_mirror ? 1 : 0));
  sample.draw.resize(mean_.size());
  for (size_t i = 0; i < mean_.size(); ++i) {
    const double z = deviation_[i] > 0 ? normal_draw(rng) : 0;
    sample.draw[i] = is_mirror ? -z : z;
  }
}

void FeatureSearch::weights_of(const Sample& sample, std::vector<double>& weights) const {
  weights = sample.start < 0 ? mean_ : starts_[sample.start];
  for (size_t i = 0; i < sample.draw.size(); ++i) weights[i] += step_ * deviation_[i] * sample.draw[i];
}

// Evaluates samples as the next evaluations. Returns false when the search is over.
bool FeatureSearch::evaluate(std::span<Sample> samples, bool is_drawn) {
  DeviceSearchResult& found = result_.found;
  const int64_t base = found.evaluations;
  const int64_t most = std::max<int64_t>(settings_.stop.evaluations, 1);
  const auto count = std::min<int64_t>(samples.size(), most - base);
  const int64_t counted = run_numbered(workers_, deadline_, base, count, [&](int64_t i, int worker) {
    Sample& sample = samples[i];
    sample.number = base + i;
    if (is_drawn) draw(sample);
    weights_of(sample, weights_[worker]);
    keys_.fill(weights_[worker], genes_[worker]);
    sample.score = decoders_[worker].decode(genes_[worker]);
    return settings_.stop.is_reached(sample.score);
  });
  for (const Sample& sample : samples.first(counted)) keep(sample);
  found.evaluations += counted;
  return counted == static_cast<int64_t>(samples.size()) && found.evaluations < most &&
         !settings_.stop.is_reached(found.score);
}

void FeatureSearch::keep(const Sample& sample) {
  const bool is_equal_kept = std::ranges::any_of(kept_, [&](const auto& one) {
    return !one.first.is_better_than(sample.score) && !sample.score.is_better_than(one.first);
  });
  const size_t most = std::max(settings_.kept, 1);
  if (is_equal_kept || (kept_.size() == most && !sample.score.is_better_than(kept_.back().first))) return;
  if (kept_.size() == most) kept_.pop_back();
  std::vector<double> weights;
  weights_of(sample, weights);
  const auto place = std::ranges::find_if(
      kept_, [&](const auto& one) { return sample.score.is_better_than(one.first); });
  kept_.insert(place, {sample.score, std::move(weights)});
  result_.found.score = kept_.front().first;
}

void FeatureSearch::adapt(std::vector<Sample>& samples) {
  std::ranges::sort(samples, [](const Sample& a, const Sample& b) { return a.is_better_than(b); });
  ++generation_;
  const double n = std::max(dimensions_, 1.0);
  const double kept = std::sqrt(path_rate_ * (2 - path_rate_) * effective_);
  double square = 0;
  for (size_t j = 0; j < mean_.size(); ++j) {
    double move = 0;
    for (size_t i = 0; i < shares_.size(); ++i) move += shares_[i] * samples[i].draw[j];
    mean_[j] += step_ * deviation_[j] * move;
    path_[j] = (1 - path_rate_) * path_[j] + kept * move;
    square += path_[j] * path_[j];
  }
  const double usual = std::sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n * n));
  step_ *= std::exp(path_rate_ / damping_ * (std::sqrt(square) / usual - 1));
}

// The mean; with Inherit also at other levels.
void FeatureSearch::add_levels() {
  const size_t level = mean_.size() - kGeneWeights + kWaitWeight;
  const double unit = step_ * deviation_[level];
  const bool has_levels = settings_.decoder == DeviceDecoder::Inherit && unit > 0;
  starts_.assign(has_levels ? kLevels.size() : 1, mean_);
  if (!has_levels) return;
  for (size_t i = 0; i < kLevels.size(); ++i) starts_[i][level] += unit * (kLevels[i] / unit);
}

// The best start becomes the mean.
bool FeatureSearch::evaluate_starts() {
  std::vector<Sample> first(starts_.size());
  for (size_t i = 0; i < first.size(); ++i) first[i].start = static_cast<int64_t>(i);
  if (!evaluate(first, false)) return false;
  const auto best = std::ranges::min_element(
      first, [](const Sample& a, const Sample& b) { return a.is_better_than(b); });
  mean_ = starts_[best->start];
  return true;
}

DeviceEsResult FeatureSearch::run() {
  bool goes_on = evaluate_starts() && dimensions_ > 0;
  std::vector<Sample> samples(population_);
  while (goes_on) {
    goes_on = evaluate(samples, true);
    if (goes_on) adapt(samples);
  }
  for (const auto& [score, weights] : kept_) {
    keys_.fill(weights, genes_[0]);
    if (result_.best_genes.empty()) {
      decoders_[0].decode(genes_[0]);
      result_.found.schedule = decoders_[0].schedule();
      result_.weights = weights;
    }
    result_.best_genes.push_back(genes_[0]);
  }
  result_.mean = mean_;
  result_.step = step_;
  return std::move(result_);
}

}  // namespace

DeviceEsResult run_device_es(const CompactDevices& problem, const DeviceEsSettings& settings,
                             const std::atomic<bool>& cancelled) {
  return FeatureSearch(problem, settings, cancelled).run();
}

std::vector<Score> weight_scores(const CompactDevices& problem, DeviceDecoder decoder, const Objective& objective,
                                 std::span<const float> extra, std::span<const double> rows, int32_t threads) {
  const auto n_extra = static_cast<int64_t>(extra.size()) / std::max(problem.n_ops(), 1);
  const auto size = static_cast<size_t>(FeatureKeys::n_weights(*problem.source, n_extra));
  const FeatureKeys keys(problem, decoder, extra);
  Workers workers(std::clamp(threads, 1, kMostThreads));
  std::vector<ScheduleDecoder> decoders;
  for (int i = 0; i < workers.count(); ++i) decoders.emplace_back(problem, objective, decoder);
  std::vector<Genes> genes(workers.count());
  std::vector<Score> scores(rows.size() / size);
  workers.run(static_cast<int64_t>(scores.size()), [&](int64_t i, int worker) {
    keys.fill(rows.subspan(i * size, size), genes[worker]);
    scores[i] = decoders[worker].decode(genes[worker]);
    return true;
  });
  return scores;
}

}  // namespace regal
