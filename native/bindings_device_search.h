#pragma once
#include <cstdint>
#include <vector>

#include "bindings.h"
#include "device_genes.h"

// What the bindings of decoders and of searches over keys share.
using GeneRow = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using GeneRows = nb::ndarray<const uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using GeneArray = nb::ndarray<nb::numpy, uint32_t, nb::ndim<2>>;

inline void require_genes(const regal::GeneLayout& layout, size_t count) {
  if (static_cast<int64_t>(count) != layout.size) throw nb::value_error("a chromosome has GeneLayout.size genes");
}

// Chromosomes of equal length become rows.
inline GeneArray gene_array(const std::vector<regal::Genes>& rows) {
  auto* kept = new std::vector<uint32_t>();
  for (const regal::Genes& row : rows) kept->insert(kept->end(), row.begin(), row.end());
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<uint32_t>*>(p); });
  return {kept->data(), {rows.size(), rows.empty() ? 0 : rows[0].size()}, owner};
}

void bind_device_decode(nb::module_& module);
