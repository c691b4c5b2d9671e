// What the kernels of data_layer.h add to tile.cuh: tiles of 144 rows and twelve warps, of which
// each has sixteen columns of a third of the rows, so that attention of whole samples keeps all
// warps at work too.
#pragma once

#include "posattn/model/cuda/medium/tile.cuh"

namespace posattn::cuda::medium {

template <int node_tiles>
struct DataSizes {
  static constexpr int row_tiles = 9;
  static constexpr int rows = 16 * row_tiles;
  static constexpr int warps = 12;
  static constexpr int threads = 32 * warps;
  static constexpr int fewest = node_tiles == 1 ? fewest_nodes : 16 * node_tiles - 15;
  static constexpr int most_samples = rows / fewest;
  static constexpr int attention_stride = 16 * node_tiles + 8;
  static constexpr int attention_halves = 16 * node_tiles * attention_stride;
  static constexpr int stored_rows() {
    int most = rows;
    for (int nodes = fewest; nodes <= 16 * node_tiles; ++nodes) {
      const int needed = (rows / nodes - 1) * nodes + 16 * node_tiles;
      most = needed > most ? needed : most;
    }
    return most;
  }
  static constexpr int buffer = stored_rows() * stride;
};

constexpr int data_maps = 3 + heads;  // M_0, M_1, M_2, G_1, G_2

// Sums of a warp: three times sixteen rows by sixteen columns.
struct RowSums {
  float c[3][2][4] = {};

  __device__ static int row(int warp) { return warp / 4 * 48; }
  __device__ static int column(int warp) { return warp % 4 * 16; }

  // += rows W^T (W [out][in]; `transposed`: rows W).
  template <bool transposed>
  __device__ void add(const Half* rows, const Half* weights, int warp, int lane) {
    const Half* a_place = rows + row(warp) * stride + upright(lane, stride);
    const Half* b_place = weights + (transposed ? column(warp) + upright(lane, stride)
                                                : column(warp) * stride + turned(lane, stride));
#pragma unroll
    for (int k = 0; k < columns; k += 16) {
      const auto b = load_operand<false, transposed, 0>(b_place + (transposed ? k * stride : k));
#pragma unroll
      for (int r = 0; r < 3; ++r) {
        multiply(c[r], load_operand<false, false, 0>(a_place + 16 * r * stride + k), b);
      }
    }
  }
  // do_pair(row, column, x, y) for two neighbours.
  template <class DoPair>
  __device__ void for_pairs(int warp, int lane, DoPair do_pair) {
#pragma unroll
    for (int r = 0; r < 3; ++r) {
      const int at = row(warp) + 16 * r + (lane >> 2);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const int first = column(warp) + 8 * n + 2 * (lane & 3);
        do_pair(at, first, c[r][n][0], c[r][n][1]);
        do_pair(at + 8, first, c[r][n][2], c[r][n][3]);
      }
    }
  }
  __device__ void add_scaled(const RowSums& other, float factor) {
#pragma unroll
    for (int r = 0; r < 3; ++r) medium::add_scaled(c[r], other.c[r], factor);
  }
};

// A product, at once times `factor`.
template <bool transposed>
__device__ inline void add_product(RowSums& sums, const Half* rows, const Half* weights,
                                   float factor, int warp, int lane) {
  RowSums product;
  product.template add<transposed>(rows, weights, warp, lane);
  sums.add_scaled(product, factor);
}

// Five matrices of weights, 64 x 64 each, in shared memory, and what they were multiplied with.
struct DataMaps {
  const Half* shared;
  Scale scale[data_maps];

  __device__ const Half* map(int index) const { return shared + index * matrix_halves; }
  __device__ const Half* scores(int head) const { return map(1 + heads + head); }
};

template <int threads>
__device__ inline DataMaps load_data_maps(Half* shared, uint32_t* slots, const float* maps,
                                          const float* scores, int warp, int lane) {
  using Matrix = Rows<threads, columns>;
  DataMaps out;
  out.shared = shared;
#pragma unroll
  for (int i = 0; i < data_maps; ++i) {
    const float* from =
        i <= heads ? maps + i * columns * columns : scores + (i - 1 - heads) * columns * columns;
    float4 x[Matrix::count];
    uint32_t most = 0;
#pragma unroll
    for (int j = 0; j < Matrix::count; ++j) {
      x[j] = Matrix::load(from, columns, j);
      most = largest_of(most, x[j]);
    }
    put_largest(slots + 32 * i, most, warp, lane);
    __syncthreads();
    out.scale[i] = scale_of(get_largest<threads / 32>(slots + 32 * i, lane));
#pragma unroll
    for (int j = 0; j < Matrix::count; ++j) {
      Matrix::template store<false, 0>(shared + i * matrix_halves, x[j], out.scale[i].up, j);
    }
  }
  return out;
}

// Sixteen nodes of a sample: what attention gives a warp at a time.
struct NodeTile {
  int sample, node;
  template <int node_tiles>
  __device__ static NodeTile of(int unit) {
    return {unit / node_tiles, unit % node_tiles * 16};
  }
};

// c = X Y^T for sixteen rows at x and 16 node_tiles rows at y, over 64 columns: scores.
template <int node_tiles>
__device__ inline void dot_rows(float (&c)[2 * node_tiles][4], const Half* x, const Half* y,
                                int lane) {
  Operand<false> a[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    a[k] = load_operand<false, false, 0>(x + upright(lane, stride) + 16 * k);
  }
#pragma unroll
  for (int pair = 0; pair < node_tiles; ++pair) {
    float sums[2][4] = {};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const Half* place = y + 16 * pair * stride + turned(lane, stride) + 16 * k;
      multiply(sums, a[k], load_operand<false, false, 0>(place));
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      c[2 * pair][e] = sums[0][e];
      c[2 * pair + 1][e] = sums[1][e];
    }
  }
}

// Sums and maxima over a row of scores, which four lanes share.
__device__ inline float row_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ inline float row_maximum(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

// Sixteen rows of mixed numbers, 64 columns -> shared memory, those of nodes alone.
__device__ inline void store_mixed(Half* to, const float (&c)[4][2][4], float factor, NodeTile at,
                                   int nodes, int lane) {
  const int node = at.node + (lane >> 2);
  Half* place = to + (at.sample * nodes + node) * stride + 2 * (lane & 3);
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float(&x)[4] = c[pair][n];
      Half* there = place + 16 * pair + 8 * n;
      if (node < nodes) store_pair<false, 0>(there, factor * x[0], factor * x[1]);
      if (node + 8 < nodes) {
        store_pair<false, 0>(there + 8 * stride, factor * x[2], factor * x[3]);
      }
    }
  }
}

}  // namespace posattn::cuda::medium
