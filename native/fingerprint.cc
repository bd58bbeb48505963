#include "fingerprint.h"

#include <array>
#include <bit>
#include <cstring>

namespace regal {
namespace {

constexpr size_t kLanes = 8;
constexpr size_t kStripe = kLanes * sizeof(uint64_t);
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;

using Lanes = std::array<uint64_t, kLanes>;

uint64_t mixed(uint64_t x) noexcept {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93;
  x ^= x >> 29;
  return x;
}

// Products of 32-bit halves vectorize on every x86-64; keys that move with the position make
// the order of the bytes count.
void add_stripe(Lanes& sums, Lanes& keys, const std::byte* at) noexcept {
  Lanes words;
  std::memcpy(words.data(), at, kStripe);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const uint64_t keyed = words[lane] ^ keys[lane];
    sums[lane] += (keyed & 0xffffffff) * (keyed >> 32);
    sums[lane] += std::rotl(words[lane], 32);
    keys[lane] += kGolden;
  }
}

}  // namespace

uint64_t fingerprint(std::span<const std::byte> bytes) noexcept {
  Lanes sums{};
  Lanes keys;
  for (size_t lane = 0; lane < kLanes; ++lane) keys[lane] = mixed(kGolden * (lane + 1));
  size_t at = 0;
  for (; at + kStripe <= bytes.size(); at += kStripe) add_stripe(sums, keys, bytes.data() + at);
  if (at < bytes.size()) {
    std::array<std::byte, kStripe> rest{};
    std::memcpy(rest.data(), bytes.data() + at, bytes.size() - at);
    add_stripe(sums, keys, rest.data());
  }
  uint64_t result = mixed(bytes.size() + kGolden);
  for (const uint64_t sum : sums) result = mixed(std::rotl(result, 27) ^ mixed(sum)) + kGolden;
  return result;
}

}  // namespace regal
