// The host's version of src/posattn/kernels/cuda/primitives.cuh, which says what these do.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

namespace posattn::cuda {

inline char* dynamic_shared() { return emulator::dynamic_shared(); }

inline float relu(float x) { return x < 0 ? 0 : x; }

// The GPU has one NaN, the host several.
inline float round_to_tf32(float x) {
  const uint32_t bits = std::isnan(x) ? 0x7fffffffu : __float_as_uint(x);
  const bool negative = (bits & 0x80000000u) != 0;
  return __uint_as_float((negative ? bits : std::min(bits, 0x7fffefffu)) + 0x1000u);
}
inline float tf32_part(float x) { return __uint_as_float(__float_as_uint(x) & 0xffffe000u); }

// To the next float towards zero: as the tensor core ends its sums.
inline float cut_to_float(double x) {
  const auto nearest = static_cast<float>(x);
  const bool beyond = std::isfinite(nearest) && std::abs(nearest) > std::abs(x);
  return beyond ? std::nextafter(nearest, 0.0f) : nearest;
}

inline void mma_tf32(float (&c)[4], float a0, float a1, float a2, float a3, float b0, float b1) {
  struct Fragment {
    float a[4], b[2];
  };
  if (emulator::warp_lanes() != 32) emulator::fail("mma_tf32 needs a full warp");
  const Fragment mine = {{tf32_part(a0), tf32_part(a1), tf32_part(a2), tf32_part(a3)},
                         {tf32_part(b0), tf32_part(b1)}};
  const Fragment* lanes = emulator::exchange(emulator::Collective::mma, mine);
  const int g = emulator::lane_index() / 4, t = emulator::lane_index() % 4;
  double sums[4] = {c[0], c[1], c[2], c[3]};
  for (int k = 0; k < 8; ++k) {
    // A(g, k), A(g + 8, k), B(k, 2t), B(k, 2t + 1)
    const Fragment& row = lanes[4 * g + k % 4];
    const double upper = row.a[k / 4 * 2], lower = row.a[k / 4 * 2 + 1];
    const double even = lanes[4 * (2 * t) + k % 4].b[k / 4];
    const double odd = lanes[4 * (2 * t + 1) + k % 4].b[k / 4];
    sums[0] += upper * even;
    sums[1] += upper * odd;
    sums[2] += lower * even;
    sums[3] += lower * odd;
  }
  for (int e = 0; e < 4; ++e) c[e] = cut_to_float(sums[e]);
}

// The bits of the half nearest to x, ties to even.
inline uint32_t half_bits(float x) {
  const uint32_t bits = __float_as_uint(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return sign | 0x7e00u;   // NaN
  if (rest >= 0x477ff000u) return sign | 0x7c00u;  // rounds to infinity
  if (rest < 0x38800000u) {                        // below 2^-14: multiples of 2^-24
    const double multiples = std::nearbyint(std::ldexp(double{__uint_as_float(rest)}, 24));
    return sign | static_cast<uint32_t>(multiples);
  }
  const uint32_t rounded = rest + 0xfffu + (rest >> 13 & 1u);
  return sign | ((rounded - 0x38000000u) >> 13);
}
inline float half_value(uint32_t half) {
  const uint32_t exponent = half >> 10 & 31u, fraction = half & 0x3ffu;
  const double magnitude = exponent == 31 ? (fraction != 0 ? double{NAN} : double{INFINITY})
                           : exponent == 0
                               ? std::ldexp(double(fraction), -24)
                               : std::ldexp(double(1024u + fraction), int(exponent) - 25);
  return static_cast<float>((half & 0x8000u) != 0 ? -magnitude : magnitude);
}
inline uint32_t pack_halves(float first, float second) {
  return half_bits(first) | half_bits(second) << 16;
}
inline float2 unpack_halves(uint32_t pair) {
  return make_float2(half_value(pair & 0xffffu), half_value(pair >> 16));
}

inline void mma_f16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                    uint32_t b1) {
  struct Fragment {
    uint32_t a[4], b[2];
  };
  if (emulator::warp_lanes() != 32) emulator::fail("mma_f16 needs a full warp");
  const Fragment* lanes =
      emulator::exchange(emulator::Collective::mma, Fragment{{a0, a1, a2, a3}, {b0, b1}});
  const int g = emulator::lane_index() / 4, t = emulator::lane_index() % 4;
  double sums[4] = {c[0], c[1], c[2], c[3]};
  for (int k = 0; k < 8; ++k) {  // pairs of the depth
    const int owner = k % 4, half = k / 4;
    const float2 upper = unpack_halves(lanes[4 * g + owner].a[2 * half]);
    const float2 lower = unpack_halves(lanes[4 * g + owner].a[2 * half + 1]);
    const float2 even = unpack_halves(lanes[4 * (2 * t) + owner].b[half]);
    const float2 odd = unpack_halves(lanes[4 * (2 * t + 1) + owner].b[half]);
    const auto dot = [](float2 x, float2 y) { return double{x.x} * y.x + double{x.y} * y.y; };
    sums[0] += dot(upper, even);
    sums[1] += dot(upper, odd);
    sums[2] += dot(lower, even);
    sums[3] += dot(lower, odd);
  }
  for (int e = 0; e < 4; ++e) c[e] = cut_to_float(sums[e]);
}

template <bool transposed>
inline void load_matrices(uint32_t (&out)[4], const void* row) {
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) emulator::fail("a row that is not aligned");
  const auto* const* rows = reinterpret_cast<const uint16_t* const*>(
      emulator::exchange(emulator::Collective::matrices, row));
  const int g = emulator::lane_index() / 4, t = emulator::lane_index() % 4;
  for (int i = 0; i < 4; ++i) {
    const uint16_t* const* matrix = rows + 8 * i;
    const uint32_t first = transposed ? matrix[2 * t][g] : matrix[g][2 * t];
    const uint32_t second = transposed ? matrix[2 * t + 1][g] : matrix[g][2 * t + 1];
    out[i] = first | second << 16;
  }
  // Nobody may write what others still read.
  emulator::meet_warp(emulator::Collective::matrices);
}

inline uint32_t transpose_matrix(uint32_t pair) {
  const uint32_t* all = emulator::exchange(emulator::Collective::shuffle, pair);
  const int g = emulator::lane_index() / 4, t = emulator::lane_index() % 4;
  const auto element = [&](int row, int column) {
    return all[4 * row + column / 2] >> 16 * (column % 2) & 0xffffu;
  };
  return element(2 * t, g) | element(2 * t + 1, g) << 16;
}

inline uint32_t warp_maximum(uint32_t x) {
  const uint32_t* all = emulator::exchange(emulator::Collective::shuffle, x);
  for (int lane = 0; lane < emulator::warp_lanes(); ++lane) x = all[lane] > x ? all[lane] : x;
  return x;
}

inline int computed_here(int x) { return x; }
inline void prefetch(const void*) {}

inline void copy_async(void* shared, const void* global) { emulator::start_copy(shared, global); }
template <int size>
inline void copy_async_part(void* shared, const void* global, int present) {
  emulator::start_copy(shared, global, size, present);
}
inline void commit_copies() { emulator::commit_copies(); }
template <int pending>
inline void wait_copies() {
  emulator::wait_copies(pending);
}

}  // namespace posattn::cuda
