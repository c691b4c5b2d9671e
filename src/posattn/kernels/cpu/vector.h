// Vectors of POSATTN_LANES floats for isa_kernels.cc, in the compiler's own vector types;
// intrinsics only where these have no equal (masks, reductions).
#pragma once

#include <stdint.h>
#include <string.h>

#if POSATTN_LANES >= 8
#include <immintrin.h>
#endif

namespace posattn {
namespace {

constexpr int lanes = POSATTN_LANES;
typedef float Vec __attribute__((vector_size(lanes * 4), aligned(4), may_alias));
typedef int32_t IntVec __attribute__((vector_size(lanes * 4), aligned(4), may_alias));

inline Vec load(const float* p) { return *reinterpret_cast<const Vec*>(p); }
inline void store(float* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }
inline Vec broadcast(float x) { return x - Vec{}; }

// All ones in the first `count` lanes, zero in the others.
inline IntVec first_lanes(int64_t count) {
  IntVec place{};
  for (int i = 0; i < lanes; ++i) place[i] = i;
  return place < static_cast<int32_t>(count);
}
inline Vec first_of(Vec v, int64_t count) { return first_lanes(count) ? v : Vec{}; }

// The first `count` < lanes elements; the rest read as zero and are not written.
inline Vec load_part(const float* p, int64_t count) {
#if POSATTN_LANES == 16
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p);
#elif POSATTN_LANES == 8
  return _mm256_maskload_ps(p, reinterpret_cast<__m256i>(first_lanes(count)));
#else
  Vec v{};
  memcpy(&v, p, count * sizeof(float));
  return v;
#endif
}
inline Vec load_part_or(const float* p, int64_t count, float fill) {
#if POSATTN_LANES == 16
  return _mm512_mask_loadu_ps(broadcast(fill), static_cast<__mmask16>((1u << count) - 1), p);
#elif POSATTN_LANES == 8
  return first_lanes(count) ? load_part(p, count) : broadcast(fill);
#else
  Vec v = broadcast(fill);
  memcpy(&v, p, count * sizeof(float));
  return v;
#endif
}
inline void store_part(float* p, Vec v, int64_t count) {
#if POSATTN_LANES == 16
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), v);
#else
  // Halves: `count` is the same time and again, so these branches cost less than a masked store.
#if POSATTN_LANES == 8
  if (count & 4) {
    memcpy(p, &v, 4 * sizeof(float));
    v = __builtin_shufflevector(v, v, 4, 5, 6, 7, 4, 5, 6, 7);
    p += 4;
  }
#endif
  const auto pair = __builtin_shufflevector(v, v, 0, 1);
  if (count & 2) {
    memcpy(p, &pair, 2 * sizeof(float));
    p += 2;
  }
  if (count & 1) *p = v[count & 2 ? 2 : 0];
#endif
}

inline float horizontal_sum(Vec v) {
#if POSATTN_LANES == 16
  return _mm512_reduce_add_ps(v);
#else
  float sum = 0;
  for (int i = 0; i < lanes; ++i) sum += v[i];
  return sum;
#endif
}
inline float horizontal_max(Vec v) {
#if POSATTN_LANES == 16
  return _mm512_reduce_max_ps(v);
#else
#if POSATTN_LANES == 8
  const Vec upper = __builtin_shufflevector(v, v, 4, 5, 6, 7, 4, 5, 6, 7);
  v = upper > v ? upper : v;
#endif
  float largest = v[0];
  for (int i = 1; i < 4; ++i) largest = v[i] > largest ? v[i] : largest;
  return largest;
#endif
}

// exp(x) for x <= 0 to about one unit in the last place: x = n log 2 + r, a polynomial in r, and n
// added to its exponent. Below -126 log 2 the result is zero: denormal numbers cost more than a
// hundred cycles each here and wherever they are multiplied. Those lanes (padding among them) hold
// anything until the end.
inline Vec exp_nonpositive(Vec x) {
  const Vec magic = broadcast(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const Vec shifted = x * 1.44269504f + magic;
  const Vec n = shifted - magic;
  Vec r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Vec y = broadcast(1.9875691500e-4f);
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * r * r + r + 1.0f;
  // The last bits of `shifted` are those of n.
  const IntVec scaled =
      reinterpret_cast<const IntVec&>(y) + (reinterpret_cast<const IntVec&>(shifted) << 23);
  return x < -87.3365f ? Vec{} : reinterpret_cast<const Vec&>(scaled);
}

}  // namespace
}  // namespace posattn
