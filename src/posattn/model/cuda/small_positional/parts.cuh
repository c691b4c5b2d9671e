// What all kernels of the fused positional engine share: the walk over tiles, the products with
// weights, the mixing over nodes.
#pragma once

#include "posattn/model/cuda/small_positional/layer.h"
#include "posattn/model/cuda/step/tile.cuh"

namespace posattn::cuda::positional {

constexpr int fused_heads = 2;
constexpr int fused_maps = 1 + fused_heads;

struct Thread {
  int warp, lane;
  int g, t;  // lane / 4 and lane % 4, as in the fragments of mma_tf32
  __device__ Thread()
      : warp(static_cast<int>(threadIdx.x) >> 5),
        lane(static_cast<int>(threadIdx.x) & 31),
        g(lane >> 2),
        t(lane & 3) {}
  // The accumulators of a thread belong to columns column() and column() + 1 of samples g, g + 8;
  // in a tile they are one chunk.
  __device__ int column() const { return 8 * warp + 2 * t; }
  __device__ int chunk() const { return 4 * warp + t; }
};

// The tiles of a block, without those of slots that rest. Items go up or down: a kernel takes them
// in the opposite order of the kernel before, so that it begins with what that one left in the L2
// cache.
struct TileWalk {
  int left;              // items to go
  int slot, item, tile;  // item and tile: of the slot

  __device__ explicit TileWalk(const FusedLayer& layer) {
    const int begin = static_cast<int>(blockIdx.x) * layer.items_per_block;
    const int end = min(begin + layer.items_per_block, layer.slots * layer.items);
    const int first = layer.descending ? end - 1 : begin;
    left = end - begin;
    slot = first / layer.items;
    item = first - slot * layer.items;
    skip_resting(layer);
    tile = item * layer.tiles_per_item;
  }
  __device__ bool done() const { return left <= 0; }
  __device__ bool ends_item(const FusedLayer& layer) const {
    return tile + 1 == layer.tiles || tile + 1 == (item + 1) * layer.tiles_per_item;
  }
  __device__ void advance(const FusedLayer& layer) {
    if (!ends_item(layer)) {
      ++tile;
      return;
    }
    --left;
    item += layer.descending ? -1 : 1;
    if (item == layer.items || item < 0) {
      next_slot(layer);
      skip_resting(layer);
    }
    tile = item * layer.tiles_per_item;
  }
  __device__ int64_t tile_index(const FusedLayer& layer) const {
    return int64_t{1} * slot * layer.tiles + tile;
  }
  __device__ int64_t item_index(const FusedLayer& layer) const {
    return int64_t{1} * slot * layer.items + item;
  }

 private:
  __device__ void next_slot(const FusedLayer& layer) {
    slot += layer.descending ? -1 : 1;
    item = layer.descending ? layer.items - 1 : 0;
  }
  __device__ void skip_resting(const FusedLayer& layer) {
    while (left > 0 && layer.steps[slot].samples == 0) {
      left -= layer.descending ? item + 1 : layer.items - item;
      next_slot(layer);
    }
  }
};

// Chunk `chunk` of group `group` in every node of a tile. The swizzle has one address for even and
// one for odd nodes; flipping bit 2 of the chunk exchanges them.
struct NodeChunks {
  int even, odd;
  __device__ NodeChunks(int group, int chunk)
      : even(tile_offset(0, group, chunk)), odd(tile_offset(1, group, chunk) - node_floats) {}
  __device__ int at(int node, int flip = 0) const {
    return ((node ^ flip) & 1 ? odd : even) + node * node_floats;
  }
};

// Starts the copy of `count` times 16 bytes per thread, of the block together.
template <int count, int done = 0>
__device__ inline void start_block_copy(float* shared, const float* global) {
  if constexpr (done == 0) {
    shared += 4 * threadIdx.x;
    global += 4 * threadIdx.x;
  }
  copy_async_at<done * 16 * tile_threads>(shared, global);
  if constexpr (done + 1 < count) start_block_copy<count, done + 1>(shared, global);
}
template <int N>
__device__ inline void start_tile_copy(float* shared, const float* global) {
  start_block_copy<tile_floats<N> / (4 * tile_threads)>(shared, global);
}

// A [H][N], rows padded to a multiple of four for 16-byte loads; absent nodes are zero.
template <int N>
struct alignas(16) AttentionRows {
  static constexpr int stride = (N + 3) / 4 * 4;
  float values[fused_heads][N][stride];

  __device__ void load(const float* natural, int nodes) {
    for (int k = threadIdx.x; k < fused_heads * N * stride; k += tile_threads) {
      const int h = k / (N * stride), i = k / stride % N, j = k % stride;
      values[h][i][j] = i < nodes && j < nodes ? natural[(h * nodes + i) * nodes + j] : 0.0f;
    }
  }
  __device__ void row(int h, int i, float (&out)[stride]) const {
#pragma unroll
    for (int j = 0; j < stride; j += 4) {
      const float4 four = load4(&values[h][i][j]);
      out[j] = four.x;
      out[j + 1] = four.y;
      out[j + 2] = four.z;
      out[j + 3] = four.w;
    }
  }
};

// A warp's fragments of a layer's packed maps: kept in registers, or read from shared memory.
struct RegisterWeights {
  static constexpr int unrolled = 4;
  float4 fragments[4][fused_maps];
  __device__ void load(const float* packed, const Thread& self) {
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
#pragma unroll
      for (int m = 0; m < fused_maps; ++m) {
        fragments[pair][m] =
            load4(packed + m * map_floats + ((pair * tile_warps + self.warp) * 32 + self.lane) * 4);
      }
    }
  }
  __device__ float4 operator()(int pair, int m) const { return fragments[pair][m]; }
};
template <bool exact>
struct SharedWeights {
  static constexpr int unrolled = exact ? 1 : 2;  // what registers allow
  const float* lane_start;
  __device__ SharedWeights(const float* packed, const Thread& self)
      : lane_start(packed + (self.warp * 32 + self.lane) * 4) {}
  __device__ float4 operator()(int pair, int m) const {
    return load4(lane_start + m * map_floats + pair * tile_warps * 128);
  }
};

// accumulators[m][node] += tile[node] W_m^T for the warp's eight columns.
template <bool exact, int N, class Weights>
__device__ inline void multiply_tile(float (&accumulators)[fused_maps][N][4], const float* tile,
                                     const Weights& weights, const Thread& self) {
  const NodeChunks chunks(self.g, self.t);
#pragma unroll Weights::unrolled
  for (int pair = 0; pair < 4; ++pair) {
    float4 w[fused_maps];
#pragma unroll
    for (int m = 0; m < fused_maps; ++m) w[m] = weights(pair, m);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float2 b[fused_maps];
#pragma unroll
      for (int m = 0; m < fused_maps; ++m) {
        b[m] = half == 0 ? make_float2(w[m].x, w[m].y) : make_float2(w[m].z, w[m].w);
      }
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float4 a = load4(tile + chunks.at(i, half) + pair * 32);
        float(*const c[fused_maps])[4] = {&accumulators[0][i], &accumulators[1][i],
                                          &accumulators[2][i]};
        multiply<exact, fused_maps>(c, a, b);
      }
    }
  }
}

// Accumulators to begin a product with: constants of the thread's two columns in map 0, else zero.
template <int N>
__device__ inline void begin_product(float (&accumulators)[fused_maps][N][4], float2 constant) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      accumulators[0][i][e] = e & 1 ? constant.y : constant.x;
#pragma unroll
      for (int h = 0; h < fused_heads; ++h) accumulators[1 + h][i][e] = 0;
    }
  }
}

// accumulators[0][i] += sum_h sum_j A_h(i, j) accumulators[1 + h][j], for one node i.
template <int N>
__device__ inline void mix_forward(float (&accumulators)[fused_maps][N][4],
                                   const AttentionRows<N>& attention, int i) {
#pragma unroll
  for (int h = 0; h < fused_heads; ++h) {
    float row[AttentionRows<N>::stride];
    attention.row(h, i, row);
#pragma unroll
    for (int j = 0; j < N; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) accumulators[0][i][e] += row[j] * accumulators[1 + h][j][e];
    }
  }
}

// accumulators[0][j] += sum_h sum_i A_h(i, j) accumulators[1 + h][i], for all nodes j.
template <int N>
__device__ inline void mix_backward(float (&accumulators)[fused_maps][N][4],
                                    const AttentionRows<N>& attention) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int h = 0; h < fused_heads; ++h) {
      float row[AttentionRows<N>::stride];
      attention.row(h, i, row);
#pragma unroll
      for (int j = 0; j < N; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) accumulators[0][j][e] += row[j] * accumulators[1 + h][i][e];
      }
    }
  }
}

// Whether a stored activation is that of an open ReLU: rounding to tf32 turns zero into a number
// too small to be anything else.
template <bool exact>
__device__ inline bool open(float r) {
  return r > (exact ? 0.0f : 1e-30f);
}

// The sum over the lanes with the same t.
__device__ inline float sum_over_samples(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 4);
  x += __shfl_xor_sync(0xffffffffu, x, 8);
  return x + __shfl_xor_sync(0xffffffffu, x, 16);
}
// Sums over the samples of tiles, for the thread's two columns. A tile is summed over the lanes
// before it is added, so that the order does not depend on who adds the tiles.
struct ColumnSums {
  float sums[2];

  __device__ void clear() { sums[0] = sums[1] = 0; }
  __device__ void add_tile(const float (&parts)[2]) {
    sums[0] += sum_over_samples(parts[0]);
    sums[1] += sum_over_samples(parts[1]);
  }
  __device__ void store(float* out, const Thread& self) const {
    if (self.g == 0)
      *reinterpret_cast<float2*>(out + self.column()) = make_float2(sums[0], sums[1]);
  }
};

}  // namespace posattn::cuda::positional
