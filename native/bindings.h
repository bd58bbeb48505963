#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

// Conversions only; no logic lives in the bindings. Every call that can take longer than 1 ms
// releases the GIL. Arrays are exact int64, C-contiguous: no silent conversion.
namespace nb = nanobind;
using Ints = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <int Columns>
using Rows = nb::ndarray<const int64_t, nb::shape<-1, Columns>, nb::c_contig, nb::device::cpu>;

template <typename Array>
std::span<const int64_t> span_of(const Array& array) {
  return {array.data(), array.size()};
}

// Moves a vector into a numpy array.
template <typename T>
nb::ndarray<nb::numpy, T, nb::ndim<1>> array_of(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return {kept->data(), {kept->size()}, owner};
}

// Set from any Python thread; a search sees it within one unit of its work.
struct Cancel {
  std::atomic<bool> is_set{false};
};

void bind_problem(nb::module_& module);
void bind_check(nb::module_& module);
void bind_search(nb::module_& module);
void bind_exact(nb::module_& module);
void bind_offsets(nb::module_& module);
void bind_devices(nb::module_& module);
void bind_device_heuristics(nb::module_& module);
void bind_device_anneal(nb::module_& module);
void bind_device_search(nb::module_& module);
void bind_fusion(nb::module_& module);
void bind_fingerprint(nb::module_& module);
