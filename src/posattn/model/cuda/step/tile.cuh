// A tile of 16 samples x N nodes x 64 columns, and products of it with 64 x 64 maps on the tensor
// core. One layout serves shared and global memory:
//
//   tile[node][group 8][chunk 32, swizzled][4]    element e of chunk c of group g is
//                                                 sample g + 8 (e & 1), column 2 c + (e >> 1)
//
// so that one 16-byte load of a chunk is
//   - with g = lane / 4, c = 4 kk + lane % 4: the A fragment of a product over the eight columns
//     8 kk .. 8 kk + 7 (in the order 8 kk + 2 t, 8 kk + 2 t + 1, which packed weights follow);
//   - a lane's accumulators {c0, c2, c1, c3} of output columns 8 w + 2 t and 8 w + 2 t + 1, for
//     chunk 4 w + t: what a warp that owns columns 8 w .. 8 w + 7 stores;
//   - with g = t (or t + 4) and c = 8 p + lane / 4: {x, y} and {z, w} are B fragments whose inner
//     dimension is the samples (t, t + 8), columns 16 p + 2 g and 16 p + 2 g + 1; {x, z, y, w} is
//     an A fragment with rows (columns 16 p + 2 g, 16 p + 2 g + 1): what weight gradients need.
// The swizzle keeps these accesses free of bank conflicts.
//
// fp32 ("exact") products split each operand in two tf32 parts and add three tensor products; the
// fourth is below fp32's rounding.
#pragma once

#include "posattn/kernels/cuda/primitives.cuh"

namespace posattn::cuda {

constexpr int tile_samples = 16;
constexpr int tile_columns = 64;
constexpr int node_floats = tile_samples * tile_columns;
constexpr int map_floats = tile_columns * tile_columns;
constexpr int tile_warps = 8;  // each owns eight output columns
constexpr int tile_threads = 32 * tile_warps;

template <int N>
constexpr int tile_floats = N* node_floats;

__host__ __device__ constexpr int tile_offset(int node, int group, int chunk) {
  const int swizzle = (((group ^ node) & 1) << 2) | (group & 2);
  return node * node_floats + group * 128 + ((chunk ^ swizzle) << 2);
}
// Finds one number.
__host__ __device__ constexpr int tile_element(int node, int sample, int column) {
  return tile_offset(node, sample & 7, column >> 1) + (sample >> 3) + 2 * (column & 1);
}

// Maps are packed in the order in which lanes need them as B fragments: the product
// y[n] = sum_k W(n, k) x[k] reads W(n, k) at packed_element(n, k).
__host__ __device__ constexpr int packed_element(int n, int k) {
  const int pair = k >> 4, half = (k >> 3) & 1, t = (k >> 1) & 3, odd = k & 1;
  const int lane = (n & 7) * 4 + t;
  return ((pair * tile_warps + (n >> 3)) * 32 + lane) * 4 + 2 * half + odd;
}

__device__ inline float4 load4(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ inline void store4(float* p, float x, float y, float z, float w) {
  *reinterpret_cast<float4*>(p) = make_float4(x, y, z, w);
}

// What is stored for a product to read: rounded for tf32, as is for fp32.
template <bool exact>
__device__ inline float operand(float x) {
  return exact ? x : round_to_tf32(x);
}

// c[m] += A B[m] for several B, interleaved so that the three products of one chain do not wait for
// each other. b[m] holds the fragment {b0, b1}.
template <bool exact, int maps>
__device__ inline void multiply(float (*const (&c)[maps])[4], float4 a, const float2 (&b)[maps]) {
  if constexpr (!exact) {
#pragma unroll
    for (int m = 0; m < maps; ++m) mma_tf32(*c[m], a.x, a.y, a.z, a.w, b[m].x, b[m].y);
  } else {
    const float4 high = make_float4(tf32_part(a.x), tf32_part(a.y), tf32_part(a.z), tf32_part(a.w));
    const float4 low = make_float4(a.x - high.x, a.y - high.y, a.z - high.z, a.w - high.w);
    float2 big[maps];
#pragma unroll
    for (int m = 0; m < maps; ++m) big[m] = make_float2(tf32_part(b[m].x), tf32_part(b[m].y));
#pragma unroll
    for (int m = 0; m < maps; ++m) {
      mma_tf32(*c[m], low.x, low.y, low.z, low.w, big[m].x, big[m].y);
    }
#pragma unroll
    for (int m = 0; m < maps; ++m) {
      mma_tf32(*c[m], high.x, high.y, high.z, high.w, b[m].x - big[m].x, b[m].y - big[m].y);
    }
#pragma unroll
    for (int m = 0; m < maps; ++m) {
      mma_tf32(*c[m], high.x, high.y, high.z, high.w, big[m].x, big[m].y);
    }
  }
}
template <bool exact>
__device__ inline void multiply(float (&c)[4], float4 a, float2 b) {
  float(*const pointers[1])[4] = {&c};
  const float2 fragments[1] = {b};
  multiply<exact, 1>(pointers, a, fragments);
}

// B fragments of several packed maps for the warp's eight columns and sixteen inner columns, the
// pair-th of four. Packed maps are in global memory, W_m at packed + m * map_floats.
template <int maps>
struct MapFragments {
  float4 map[maps];

  __device__ MapFragments(const float* packed, int pair, int warp, int lane) {
#pragma unroll
    for (int m = 0; m < maps; ++m) {
      map[m] = load4(packed + m * map_floats + ((pair * tile_warps + warp) * 32 + lane) * 4);
    }
  }
};

// accumulators[m][node] += tile[node] W_m^T for the warp's eight columns; each warp reads its 2 KB
// of a map once. The caller loads the first fragments, early enough not to wait for them here.
template <bool exact, int maps, int N>
__device__ inline void add_products(float (&accumulators)[maps][N][4], const float* tile,
                                    const float* packed, MapFragments<maps> next, int warp,
                                    int lane) {
  const int g = lane >> 2, t = lane & 3;
#pragma unroll 1
  for (int pair = 0; pair < 4; ++pair) {
    const MapFragments<maps> weights = next;
    next = MapFragments<maps>(packed, pair < 3 ? pair + 1 : 3, warp, lane);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float2 b[maps];
#pragma unroll
      for (int m = 0; m < maps; ++m) {
        const float4 w = weights.map[m];
        b[m] = half == 0 ? make_float2(w.x, w.y) : make_float2(w.z, w.w);
      }
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float4 a = load4(tile + tile_offset(i, g, 8 * pair + 4 * half + t));
        float(*c[maps])[4];
#pragma unroll
        for (int m = 0; m < maps; ++m) c[m] = &accumulators[m][i];
        multiply<exact, maps>(c, a, b);
      }
    }
  }
}

}  // namespace posattn::cuda
