#include <bit>

#include "bindings.h"
#include "fingerprint.h"

using namespace nb::literals;

void bind_fingerprint(nb::module_& module) {
  module.def(
      "fingerprints",
      [](Ints addresses, Ints sizes) {
        std::vector<int64_t> found;
        if (addresses.size() != sizes.size()) return array_of(std::move(found));
        found.reserve(addresses.size());
        {
          nb::gil_scoped_release unlocked;
          for (size_t i = 0; i < addresses.size(); ++i) {
            // The caller holds the memory for the time of the call.
            const auto* start = std::bit_cast<const std::byte*>(addresses.data()[i]);
            const auto size = static_cast<size_t>(sizes.data()[i]);
            found.push_back(std::bit_cast<int64_t>(regal::fingerprint({start, size})));
          }
        }
        return array_of(std::move(found));
      },
      "addresses"_a, "sizes"_a,
      "Numbers that change with the bytes at some addresses; nothing if the counts differ.");
}
