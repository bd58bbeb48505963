#include "random_keys.h"

#include <algorithm>
#include <cmath>

namespace regal {
namespace {

// Marsaglia & Tsang 2000.
double gamma_draw(Rng& rng, double shape) {
  const double boost = shape < 1 ? std::pow(1 - rng.uniform(), 1 / shape) : 1;
  const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = normal_draw(rng);
    const double v = (1 + c * x) * (1 + c * x) * (1 + c * x);
    if (v <= 0) continue;
    if (std::log1p(-rng.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v * boost;
  }
}

uint32_t beta_key(Rng& rng, double alpha, double beta) {
  const double a = gamma_draw(rng, alpha);
  const double b = gamma_draw(rng, beta);
  const double share = a + b > 0 ? a / (a + b) : 0.5;
  return static_cast<uint32_t>(std::min(share * 0x1.0p32, 0x1.0p32 - 1));
}

}  // namespace

double normal_draw(Rng& rng) {
  const double radius = std::sqrt(-2 * std::log1p(-rng.uniform()));
  return radius * std::cos(6.283185307179586 * rng.uniform());
}

void draw_genes(Rng& rng, const Proposal& proposal, Genes& genes) {
  if (genes.empty()) return;
  if (!proposal.alpha.empty()) {
    for (size_t i = 0; i < genes.size(); ++i) {
      genes[i] = beta_key(rng, proposal.alpha[i], proposal.beta[i]);
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
