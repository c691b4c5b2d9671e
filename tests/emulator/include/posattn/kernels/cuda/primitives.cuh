// The host's version of src/posattn/kernels/cuda/primitives.cuh, which says what these do.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

namespace posattn::cuda {

inline char* dynamic_shared() { return emulator::dynamic_shared(); }

inline float round_to_tf32(float x) { return __uint_as_float(__float_as_uint(x) + 0x1000u); }
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

inline void copy_async(void* shared, const void* global) { emulator::start_copy(shared, global); }
template <int bytes>
inline void copy_async_at(void* shared, const void* global) {
  emulator::start_copy(static_cast<char*>(shared) + bytes,
                       static_cast<const char*>(global) + bytes);
}
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
