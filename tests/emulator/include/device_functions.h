// What kernels use: qualifiers, built-in variables, vectors, barriers, shuffles, intrinsics.
#pragma once

#include <math.h>

#include <bit>
#include <cstdint>
#include <type_traits>

#include "../emulator.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static thread_local
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned width = 1, unsigned height = 1, unsigned depth = 1)
      : x(width), y(height), z(depth) {}
};
extern constinit thread_local uint3 threadIdx;
extern constinit thread_local uint3 blockIdx;
extern constinit thread_local dim3 blockDim;
extern constinit thread_local dim3 gridDim;
constexpr int warpSize = 32;

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

inline void __syncthreads() { posattn::emulator::meet_block(); }
inline void __syncwarp() { posattn::emulator::meet_warp(posattn::emulator::Collective::syncwarp); }

namespace posattn::emulator {

// The value of lane `source`, or this lane's own where that is no lane of its segment.
template <class T>
T shuffle(unsigned mask, T value, int source, int width) {
  static_assert(std::is_arithmetic_v<T>, "shuffles move numbers");
  if (mask != 0xffffffffu) fail("the mask of a shuffle must name all lanes");
  const T* values = exchange(Collective::shuffle, value);
  const int lane = lane_index();
  return source < warp_lanes() && source / width == lane / width && source >= 0 ? values[source]
                                                                                : value;
}

}  // namespace posattn::emulator

template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = warpSize) {
  const int lane = posattn::emulator::lane_index();
  return posattn::emulator::shuffle(mask, value, lane / width * width + (source & (width - 1)),
                                    width);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize) {
  return posattn::emulator::shuffle(mask, value, posattn::emulator::lane_index() ^ lane_mask,
                                    width);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int lane = posattn::emulator::lane_index();
  return posattn::emulator::shuffle(mask, value, lane + static_cast<int>(delta), width);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
  const int lane = posattn::emulator::lane_index();
  return posattn::emulator::shuffle(mask, value, lane - static_cast<int>(delta), width);
}

inline unsigned __ballot_sync(unsigned mask, bool predicate) {
  unsigned lanes = 0;
  for (int lane = 0; lane < warpSize; ++lane) {
    lanes |= static_cast<unsigned>(__shfl_sync(mask, predicate, lane)) << lane;
  }
  return lanes;
}
inline int __ffs(int x) { return __builtin_ffs(x); }

inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
template <class T>
T __ldg(const T* p) {
  return *p;
}

inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fsub_rn(float x, float y) { return x - y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __ddiv_rn(double x, double y) { return x / y; }

inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(uint64_t{x} * y >> 32);
}
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }

constexpr int min(int x, int y) { return y < x ? y : x; }
constexpr unsigned min(unsigned x, unsigned y) { return y < x ? y : x; }
constexpr int64_t min(int64_t x, int64_t y) { return y < x ? y : x; }
constexpr uint64_t min(uint64_t x, uint64_t y) { return y < x ? y : x; }
inline float min(float x, float y) { return fminf(x, y); }
inline double min(double x, double y) { return fmin(x, y); }
constexpr int max(int x, int y) { return x < y ? y : x; }
constexpr unsigned max(unsigned x, unsigned y) { return x < y ? y : x; }
constexpr int64_t max(int64_t x, int64_t y) { return x < y ? y : x; }
constexpr uint64_t max(uint64_t x, uint64_t y) { return x < y ? y : x; }
inline float max(float x, float y) { return fmaxf(x, y); }
inline double max(double x, double y) { return fmax(x, y); }
