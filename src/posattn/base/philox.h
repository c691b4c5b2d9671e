// Philox4x32-10 of Salmon, Moraes, Dror and Shaw ("Parallel random numbers: as easy as 1, 2, 3",
// SC 2011): four random words from a counter of four and a key of two, in ten rounds. Ours, since
// the public library refuses processors that it does not know; tests pin the words.
#pragma once

#include <array>
#include <cstdint>

namespace posattn {

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
