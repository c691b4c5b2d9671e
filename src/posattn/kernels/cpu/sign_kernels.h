// sign_products of tile_kernels.h, a part of isa_kernels.cc: products of signs as XNOR and a count.
#pragma once

#include <stdint.h>

#include "posattn/kernels/cpu/vector.h"

namespace posattn {
namespace {

// By vector: which lanes are not 0, and which are below 0.
struct SignBits {
  uint64_t present, negative;
};
inline SignBits sign_bits(Vec v) {
#if POSATTN_LANES == 16
  return {_mm512_cmp_ps_mask(v, Vec{}, _CMP_NEQ_UQ), _mm512_cmp_ps_mask(v, Vec{}, _CMP_LT_OQ)};
#elif POSATTN_LANES == 8
  const auto bits = [](IntVec mask) {
    return static_cast<uint64_t>(_mm256_movemask_ps(reinterpret_cast<Vec&>(mask)));
  };
  return {bits(v != 0), bits(v < 0)};
#else
  SignBits bits{};
  for (int i = 0; i < lanes; ++i) {
    bits.present |= static_cast<uint64_t>(v[i] != 0) << i;
    bits.negative |= static_cast<uint64_t>(v[i] < 0) << i;
  }
  return bits;
#endif
}

// words [2 ceil(size / 64)]: by turns which numbers are not 0, and which are below 0.
inline void pack_signs(int64_t size, const float* x, uint64_t* words) {
  for (int64_t first = 0; first < size; first += 64, words += 2) {
    SignBits word{};
    for (int64_t c = 0; c < 64 && first + c < size; c += lanes) {
      const int64_t part = size - first - c;
      const float* at = x + first + c;
      const SignBits bits = sign_bits(part < lanes ? load_part(at, part) : load(at));
      word.present |= bits.present << c;
      word.negative |= bits.negative << c;
    }
    words[0] = word.present;
    words[1] = word.negative;
  }
}

void sign_products(int64_t rows, int64_t columns, int64_t size, const float* x, const float* y,
                   uint64_t* packed, float* out) {
  const int64_t words = 2 * ((size + 63) / 64);
  uint64_t* of_y = packed + rows * words;
  for (int64_t r = 0; r < rows; ++r) pack_signs(size, x + r * size, packed + r * words);
  for (int64_t c = 0; c < columns; ++c) pack_signs(size, y + c * size, of_y + c * words);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const uint64_t *a = packed + r * words, *b = of_y + c * words;
      int64_t sum = 0;
      for (int64_t w = 0; w < words; w += 2) {
        const uint64_t both = a[w] & b[w], differ = both & (a[w + 1] ^ b[w + 1]);
        sum += __builtin_popcountll(both) - 2 * __builtin_popcountll(differ);
      }
      out[r * columns + c] = static_cast<float>(sum);
    }
  }
}

}  // namespace
}  // namespace posattn
