// How rows, weights and attention come from global to shared memory: as halves, times a power of
// two that follows from the largest of them.
#pragma once

#include "posattn/model/cuda/medium/tile.cuh"

namespace posattn::cuda::medium {

// Numbers of a tile, four neighbours at a time: thread i has columns 4 (i % 16) .. of row i / 16
// and of those every threads / 16 further on.
template <int threads, int rows>
struct Rows {
  static constexpr int count = (16 * rows + threads - 1) / threads;

  __device__ static int row(int i) {
    return static_cast<int>(threadIdx.x) / 16 + i * (threads / 16);
  }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % 16 * 4; }

  // Rows from `present` on are zeros.
  __device__ static float4 load(const float* from, int present, int i) {
    return row(i) < present ? *reinterpret_cast<const float4*>(from + row(i) * columns + column())
                            : make_float4(0, 0, 0, 0);
  }

  // Starts a copy of the thread's numbers for itself alone, so it needs no barrier.
  __device__ static void start_copy(float* copy, const float* from, int present) {
#pragma unroll
    for (int i = 0; i < count; ++i) {
      float* to = copied(copy, i);
      if (row(i) < present) {
        copy_async(to, from + row(i) * columns + column());
      } else {
        *reinterpret_cast<float4*>(to) = make_float4(0, 0, 0, 0);
      }
    }
  }
  __device__ static float4 load_copy(const float* copy, int i) {
    return *reinterpret_cast<const float4*>(copied(const_cast<float*>(copy), i));
  }

  template <bool exact, int plane>
  __device__ static void store(Half* to, float4 x, float up, int i) {
    if (row(i) >= rows) return;
    Half* place = to + row(i) * stride + column();
    const float a = x.x * up, b = x.y * up, c = x.z * up, d = x.w * up;
    const uint32_t first = pack_halves(a, b), second = pack_halves(c, d);
    *reinterpret_cast<uint2*>(place) = make_uint2(first, second);
    if constexpr (exact) {
      const float2 p = unpack_halves(first), q = unpack_halves(second);
      *reinterpret_cast<uint2*>(place + plane) =
          make_uint2(pack_halves(a - p.x, b - p.y), pack_halves(c - q.x, d - q.y));
    }
  }

 private:
  __device__ static float* copied(float* copy, int i) {
    return copy + 4 * (i * threads + static_cast<int>(threadIdx.x));
  }
};

// Bits of the largest magnitude; a NaN is larger than all numbers.
__device__ inline uint32_t largest_of(uint32_t most, float4 x) {
  const auto larger = [](uint32_t bits, float y) {
    const uint32_t other = __float_as_uint(y) & 0x7fffffffu;
    return other > bits ? other : bits;
  };
  return larger(larger(larger(larger(most, x.x), x.y), x.z), x.w);
}

// The largest of all warps' numbers; two barriers apart, `slots` may be used again.
__device__ inline void put_largest(uint32_t* slots, uint32_t largest, int warp, int lane) {
  const uint32_t of_warp = warp_maximum(largest);
  if (lane == 0) slots[warp] = of_warp;
}
template <int warps>
__device__ inline uint32_t get_largest(const uint32_t* slots, int lane) {
  return warp_maximum(lane < warps ? slots[lane] : 0);
}

// A 64 x 64 matrix of weights in shared memory. There is a barrier in it, after which `slots`
// (32 of them) are read until the next one.
template <bool exact, int threads, int plane>
__device__ inline Scale load_map(Half* shared, uint32_t* slots, const float* weights, int warp,
                                 int lane) {
  using Matrix = Rows<threads, columns>;
  float4 x[Matrix::count];
  uint32_t most = 0;
#pragma unroll
  for (int j = 0; j < Matrix::count; ++j) {
    x[j] = Matrix::load(weights, columns, j);
    most = largest_of(most, x[j]);
  }
  put_largest(slots, most, warp, lane);
  __syncthreads();
  const Scale scale = scale_of(get_largest<threads / 32>(slots, lane));
#pragma unroll
  for (int j = 0; j < Matrix::count; ++j) {
    Matrix::template store<exact, plane>(shared, x[j], scale.up, j);
  }
  return scale;
}

// The weights of a slot's layer in shared memory, made once a block.
struct Maps {
  Half *m, *v, *p;
  Scale m_scale, v_scale, p_scale;
};
template <bool exact, int threads>
__device__ inline Maps load_maps(Half* shared, uint32_t* slots, const float* weights, int warp,
                                 int lane) {
  Maps maps = {shared, shared + matrix_halves, shared + 2 * matrix_halves, {}, {}, {}};
#pragma unroll 1
  for (int i = 0; i < 3; ++i) {
    const Scale scale = load_map<exact, threads, maps_plane>(
        shared + i * matrix_halves, slots + 32 * i, weights + i * columns * columns, warp, lane);
    if (i == 0) maps.m_scale = scale;
    if (i == 1) maps.v_scale = scale;
    if (i == 2) maps.p_scale = scale;
  }
  return maps;
}

// A [heads, nodes, nodes] in shared memory; what is behind the nodes stays as it is (zeros).
template <bool exact, int node_tiles>
__device__ inline void load_attention(Half* shared, const float* attention, int nodes, int warp,
                                      int lane) {
  using S = Sizes<exact, node_tiles>;
  for (int row = warp; row < heads * nodes; row += S::warps) {
    const int head = row / nodes, i = row - head * nodes;
    Half* to = shared + head * S::attention_halves + i * S::attention_stride;
    for (int j = 2 * lane; j < nodes; j += 64) {
      const float* from = attention + row * nodes + j;
      store_pair<exact, heads * S::attention_halves>(to + j, from[0] * attention_up,
                                                     j + 1 < nodes ? from[1] * attention_up : 0);
    }
  }
}

__device__ inline void fill_with_zeros(Half* shared, int halves, int threads) {
  for (int at = 8 * static_cast<int>(threadIdx.x); at < halves; at += 8 * threads) {
    *reinterpret_cast<uint4*>(shared + at) = make_uint4(0, 0, 0, 0);
  }
}

}  // namespace posattn::cuda::medium
