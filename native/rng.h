#pragma once
#include <cstdint>

namespace regal {

// One step of splitmix64: spreads the bits of any counter.
inline uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// xoshiro256++ (Blackman & Vigna 2018). A generator belongs to (seed, stream), for instance to
// the number of an evaluation, never to a thread: the same numbers come with any thread count.
class Rng {
 public:
  Rng(uint64_t seed, uint64_t stream) {
    uint64_t start = mixed(mixed(seed) ^ (stream * 0xd1342543de82ef95u));
    for (uint64_t& word : state_) word = start = mixed(start);
  }

  uint64_t next() {
    const uint64_t result = rotated(state_[0] + state_[3], 23) + state_[0];
    const uint64_t kept = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= kept;
    state_[3] = rotated(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound); bound > 0. The bias is below 2^-32 for every bound of a plan.
  uint32_t below(uint32_t bound) {
    return static_cast<uint32_t>(((next() >> 32) * static_cast<uint64_t>(bound)) >> 32);
  }

  // Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  static uint64_t rotated(uint64_t value, int by) { return (value << by) | (value >> (64 - by)); }
  uint64_t state_[4];
};

}  // namespace regal
