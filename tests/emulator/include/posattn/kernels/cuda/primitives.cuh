// The host's version of src/posattn/kernels/cuda/primitives.cuh, which says what these do.
#pragma once

#include <cuda_runtime.h>

namespace posattn::cuda {

inline char* dynamic_shared() { return emulator::dynamic_shared(); }

inline float round_to_tf32(float x) { return __uint_as_float(__float_as_uint(x) + 0x1000u); }
inline float tf32_part(float x) { return __uint_as_float(__float_as_uint(x) & 0xffffe000u); }

inline void mma_tf32(float (&c)[4], float a0, float a1, float a2, float a3, float b0, float b1) {
  struct Fragment {
    float a[4], b[2];
  };
  if (emulator::warp_lanes() != 32) emulator::fail("mma_tf32 needs a full warp");
  const Fragment mine = {{tf32_part(a0), tf32_part(a1), tf32_part(a2), tf32_part(a3)},
                         {tf32_part(b0), tf32_part(b1)}};
  const Fragment* lanes = emulator::exchange(emulator::Collective::mma, mine);
  const int g = emulator::lane_index() / 4, t = emulator::lane_index() % 4;
  for (int k = 0; k < 8; ++k) {
    // A(g, k), A(g + 8, k), B(k, 2t), B(k, 2t + 1)
    const Fragment& row = lanes[4 * g + k % 4];
    const float upper = row.a[k / 4 * 2], lower = row.a[k / 4 * 2 + 1];
    const float even = lanes[4 * (2 * t) + k % 4].b[k / 4];
    const float odd = lanes[4 * (2 * t + 1) + k % 4].b[k / 4];
    c[0] += upper * even;
    c[1] += upper * odd;
    c[2] += lower * even;
    c[3] += lower * odd;
  }
}

inline void copy_async(void* shared, const void* global) { emulator::start_copy(shared, global); }
template <int bytes>
inline void copy_async_at(void* shared, const void* global) {
  emulator::start_copy(static_cast<char*>(shared) + bytes,
                       static_cast<const char*>(global) + bytes);
}
inline void commit_copies() { emulator::commit_copies(); }
template <int pending>
inline void wait_copies() {
  emulator::wait_copies(pending);
}

}  // namespace posattn::cuda
