#include "random_keys.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

namespace regal {
namespace {

constexpr int kCells = 128;
constexpr double kSharp = 200;  // alpha + beta above this: the mass lies in a few of the usual cells

// The stretch of keys over which a density is summed, in parts.
struct Cells {
  std::array<double, kCells> log_key;   // in the middle of each cell
  std::array<double, kCells> log_rest;  // of one minus it
  std::array<double, kCells + 1> edge;
  bool is_even;  // else the usual ones, all from 0 to 1, narrow at the ends: x = (1 - cos(pi s)) / 2

  Cells() : is_even(false) {
    constexpr double kPi = 3.141592653589793;
    const auto key = [](double s) { return 0.5 - 0.5 * std::cos(kPi * s); };
    for (int i = 0; i <= kCells; ++i) edge[i] = key(static_cast<double>(i) / kCells);
    for (int i = 0; i < kCells; ++i) {
      log_key[i] = std::log(key((i + 0.5) / kCells));
      log_rest[i] = std::log(key(1 - (i + 0.5) / kCells));
    }
  }

  Cells(double low, double high) : is_even(true) {
    const double width = (high - low) / kCells;
    for (int i = 0; i < kCells; ++i) edge[i] = low + i * width;
    edge.back() = high;
    for (int i = 0; i < kCells; ++i) {
      log_key[i] = std::log(low + (i + 0.5) * width);
      log_rest[i] = std::log(1 - high + (kCells - i - 0.5) * width);
    }
  }
};

Cells cells_around(double alpha, double beta) {
  const double mean = alpha / (alpha + beta);
  const double reach = 7 * std::sqrt(mean * (1 - mean) / (alpha + beta + 1));
  return {std::max(mean - reach, 0.0), std::min(mean + reach, 1.0)};
}

// What the middle of a cell at an end misses of a density that is a power of the distance.
double end_factor(double power) { return power * std::log(2.0) - std::log(power + 1); }

// Shares of a Beta below the right edges of all cells, times a constant.
std::array<double, kCells> sums_of(const Cells& cells, double alpha, double beta) {
  const double skew = cells.is_even ? 1 : 0.5;  // the rest is the width of a cell
  const double per_cell = cells.is_even ? 1 : 2;  // keys at the ends grow so with the cells' number
  std::array<double, kCells> sums;
  for (int i = 0; i < kCells; ++i) {
    sums[i] = (alpha - skew) * cells.log_key[i] + (beta - skew) * cells.log_rest[i];
  }
  if (cells.edge.front() == 0) sums.front() += end_factor(per_cell * alpha - 1);
  if (cells.edge.back() == 1) sums.back() += end_factor(per_cell * beta - 1);
  const double most = *std::max_element(sums.begin(), sums.end());
  double sum = 0;
  for (double& value : sums) value = sum += std::exp(value - most);
  return sums;
}

template <int steps>
void add_quantiles(const Cells& cells, double alpha, double beta, std::vector<uint16_t>& quantiles) {
  const std::array<double, kCells> sums = sums_of(cells, alpha, beta);
  int cell = 0;
  for (int i = 0; i <= steps; ++i) {
    // The ends would be those of all keys: their lines stop an eighth of a step before.
    const double step = std::clamp<double>(i, 0.125, steps - 0.125);
    const double wanted = step / steps * sums.back();
    while (cell + 1 < kCells && sums[cell] < wanted) ++cell;
    const double below = cell == 0 ? 0 : sums[cell - 1];
    const double inside = sums[cell] > below ? (wanted - below) / (sums[cell] - below) : 0;
    const double key = cells.edge[cell] + inside * (cells.edge[cell + 1] - cells.edge[cell]);
    quantiles.push_back(static_cast<uint16_t>(std::clamp(key * 65536, 0.0, 65535.0)));
  }
}

}  // namespace

double normal_draw(Rng& rng) {
  const double radius = std::sqrt(-2 * std::log1p(-rng.uniform()));
  return radius * std::cos(6.283185307179586 * rng.uniform());
}

KeyDraws::KeyDraws(const Proposal& proposal) {
  if (proposal.alpha.empty()) return;
  const Cells cells;
  std::map<std::pair<double, double>, uint32_t> known;
  begin_.reserve(proposal.alpha.size());
  for (size_t i = 0; i < proposal.alpha.size(); ++i) {
    const std::pair which(proposal.alpha[i], proposal.beta[i]);
    const auto [place, is_new] = known.try_emplace(which, static_cast<uint32_t>(quantiles_.size()));
    if (is_new) {
      const auto [alpha, beta] = which;
      const bool is_sharp = alpha + beta > kSharp;
      add_quantiles<kSteps>(is_sharp ? cells_around(alpha, beta) : cells, alpha, beta, quantiles_);
    }
    begin_.push_back(place->second);
  }
}

void KeyDraws::fill(Rng& rng, Genes& genes) const {
  const auto key = [&](size_t i, uint64_t draw) {
    if (begin_.empty()) return static_cast<uint32_t>(draw);
    constexpr int kRest = 26;  // bits after the step
    const uint16_t* low = quantiles_.data() + begin_[i] + (draw >> kRest);
    const int64_t width = int64_t{low[1]} - low[0];
    const auto rest = static_cast<int64_t>(draw & ((1 << kRest) - 1));
    return (uint32_t{low[0]} << 16) + static_cast<uint32_t>((width * rest) >> (kRest - 16));
  };
  for (size_t i = 0; i < genes.size(); i += 2) {
    const uint64_t word = rng.next();
    genes[i] = key(i, word & UINT32_MAX);
    if (i + 1 < genes.size()) genes[i + 1] = key(i + 1, word >> 32);
  }
}

uint32_t chance_of(double probability) {
  return static_cast<uint32_t>(std::lround(std::clamp(probability, 0.0, 1.0) * 65536));
}

void cross_genes(Rng& rng, std::span<const uint32_t> chances, const Genes& elite, const Genes& other,
                 Genes& child) {
  const uint32_t* const a = elite.data();
  const uint32_t* const b = other.data();
  const size_t n = child.size();
  for (size_t begin = 0; begin < n; begin += 4) {
    const uint64_t word = rng.next();
    for (size_t i = begin; i < std::min(begin + 4, n); ++i) {
      const bool from_elite = (word >> (16 * (i - begin)) & 0xffff) < chances[i];
      child[i] = from_elite ? a[i] : b[i];
    }
  }
}

}  // namespace regal
