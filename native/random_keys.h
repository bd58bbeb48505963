#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "rng.h"

namespace regal {

// A chromosome of random keys: any 32 bits per gene.
using Genes = std::vector<uint32_t>;

inline constexpr uint32_t kNeutralKey = uint32_t{1} << 31;

// What a policy may set, per gene (or none): the Beta distribution that random chromosomes are
// drawn from, and the chance that a gene comes from the elite parent.
struct Proposal {
  std::span<const double> alpha;
  std::span<const double> beta;
  std::span<const double> gene_bias;
};

double normal_draw(Rng& rng);

// Fills `genes` with independent draws: uniform ones without alpha and beta.
void draw_genes(Rng& rng, const Proposal& proposal, Genes& genes);

// A chance as the number of 16-bit values below which a draw says yes.
uint32_t chance_of(double probability);

// Every gene of `child` comes from `elite` with its chance (see chance_of), else from `other`.
void cross_genes(Rng& rng, std::span<const uint32_t> chances, const Genes& elite, const Genes& other,
                 Genes& child);

}  // namespace regal
