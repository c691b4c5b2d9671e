#include "posattn/base/random.h"

#include <cmath>
#include <numbers>

namespace posattn {

RandomStream::RandomStream(uint64_t seed, Purpose purpose, uint32_t variant, uint32_t index)
    : seed_(seed), purpose_(static_cast<uint32_t>(purpose)), variant_(variant), index_(index) {}

uint32_t RandomStream::next() {
  if (used_ == 4) {
    words_ = philox({block_++, index_, variant_, purpose_}, static_cast<uint32_t>(seed_),
                    static_cast<uint32_t>(seed_ >> 32));
    used_ = 0;
  }
  return words_[used_++];
}

float RandomStream::uniform() { return static_cast<float>(next() >> 8) * 0x1p-24f; }

float RandomStream::uniform(float low, float high) {
  // The build compiles this file with -ffp-contract=off.
  const float span = high - low;
  const float offset = span * uniform();
  return low + offset;
}

uint32_t RandomStream::below(uint32_t bound) {
  const uint32_t reject = (0u - bound) % bound;
  for (;;) {
    const uint64_t product = static_cast<uint64_t>(next()) * bound;
    if (static_cast<uint32_t>(product) >= reject) return static_cast<uint32_t>(product >> 32);
  }
}

double RandomStream::normal() {
  const double u = (static_cast<double>(next()) + 1.0) * 0x1p-32;
  const double v = static_cast<double>(next()) * 0x1p-32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace posattn
