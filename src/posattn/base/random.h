// Counter-based random numbers (Philox4x32-10). A number is a pure function of
// (seed, purpose, variant, index, position in the stream), so results depend neither on the number
// of threads nor on the order in which samples are made, and a GPU can make the same ones.
#pragma once

#include <array>
#include <cstdint>

namespace posattn {

enum class Purpose : uint32_t {
  train_data = 1,
  validation_data = 2,
  test_data = 3,
  shuffle = 4,
  initial_values = 5,
  encoding = 6,
  evaluation_data = 7,
  posterior_training = 8,  // of a certificate
  posterior_draws = 9,
  attention_draws = 10,  // which node a node reads: variant is the step
  node_positions = 11,   // variant is the step
};

class RandomStream {
 public:
  // `index` is the sample (or tensor); `variant` tells streams of one purpose apart (the epoch of a
  // shuffle, the bits of a test scale, a length).
  RandomStream(uint64_t seed, Purpose purpose, uint32_t variant, uint32_t index);

  uint32_t next();

  // Uniform in [0, 1): 24 random bits, exact in float.
  float uniform();

  // low + (high - low) * uniform(), each operation rounded to float (never contracted to a fused
  // multiply-add, so every backend makes the same samples).
  float uniform(float low, float high);

  // Uniform integer in [0, bound), bound > 0, by multiplication and rejection (unbiased).
  uint32_t below(uint32_t bound);

  // Standard normal (Box-Muller, in double).
  double normal();

 private:
  uint64_t seed_;
  uint32_t purpose_, variant_, index_;
  uint32_t block_ = 0;
  uint32_t used_ = 4;
  std::array<uint32_t, 4> words_ = {};
};

// Philox4x32-10 of Salmon, Moraes, Dror and Shaw ("Parallel random numbers: as easy as 1, 2, 3",
// SC 2011): four random words from a counter of four and a key of two, in ten rounds. Ours, since
// the public library refuses processors that it does not know; tests pin the words.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint32_t key0,
                                         uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
        static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9;  // the golden ratio, and the square root of three less one
    key1 += 0xBB67AE85;
  }
  return counter;
}

}  // namespace posattn
