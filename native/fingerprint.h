#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace regal {

// A number that changes with the bytes: any change goes unseen with a probability of about
// 2^-60, and one pass through memory is all it takes. Not for adversaries.
uint64_t fingerprint(std::span<const std::byte> bytes) noexcept;

}  // namespace regal
