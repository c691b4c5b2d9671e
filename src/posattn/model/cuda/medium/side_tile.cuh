// Layers whose scores do not fold: RoPE on data, and attention from [data | positions]. Of each
// head
//   q = turn(s Q^T + b_i),   k = turn(s K^T + b'_i),   A = softmax(q k^T),
// with biases for each node i (in them what positions add) and RoPE's turns, or none. Queries and
// keys, *sides* both, have 16 score_tiles columns; those behind the model's are zeros. Tiles have
// 96 rows, of which each of twelve warps has a third and sixteen columns.
#pragma once

#include "posattn/model/cuda/medium/data_gradient.cuh"
#include "posattn/model/cuda/medium/data_softmax.cuh"

namespace posattn::cuda::medium {

constexpr int side_rows = 96, side_stored_rows = 104;
constexpr int side_buffer = side_stored_rows * stride;  // of 64 columns

// Samples of a tile.
constexpr int side_samples(int nodes) {
  const int read = (nodes + 15) / 16 * 16;
  const int room = (side_stored_rows - read) / nodes + 1, full = side_rows / nodes;
  return room < full ? room : full;
}
template <int node_tiles>
constexpr int most_side_samples() {
  int most = 1;
  for (int nodes = fewest_nodes; nodes <= 16 * node_tiles; ++nodes) {
    if ((nodes + 15) / 16 == node_tiles && side_samples(nodes) > most) most = side_samples(nodes);
  }
  return most;
}

template <int score_tiles>
struct Sides {
  static constexpr int columns = 16 * score_tiles;
  static constexpr int row_stride = columns + 8;
  static constexpr int buffer = side_stored_rows * row_stride;
  static constexpr int matrix = columns * stride;  // of Q or K, [columns][64]
  static constexpr int maps = 3 * matrix_halves + 2 * heads * matrix;
};

// Thirty-two rows by sixteen columns of a product.
struct BlockSums {
  static constexpr int row_groups = side_rows / 32;
  float c[2][2][4] = {};

  // += rows W^T (W [out][in], at its first out), or, `transposed`, rows W (at its first column).
  template <int depth, int row_stride, bool transposed>
  __device__ void add(const Half* rows, const Half* weights, int lane) {
    const Half* a_place = rows + upright(lane, row_stride);
    const Half* b_place = weights + (transposed ? upright(lane, stride) : turned(lane, stride));
#pragma unroll
    for (int k = 0; k < depth; k += 16) {
      const auto b = load_halves<transposed>(b_place + (transposed ? k * stride : k));
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        multiply(c[r], load_halves<false>(a_place + 16 * r * row_stride + k), b);
      }
    }
  }
  __device__ void add_scaled(const BlockSums& other, float factor) {
#pragma unroll
    for (int r = 0; r < 2; ++r) medium::add_scaled(c[r], other.c[r], factor);
  }
  // body(row, column, x, y) for two neighbours, counted from the block's first.
  template <class Body>
  __device__ void for_pairs(int lane, Body body) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const int row = 16 * r + (lane >> 2), column = 8 * n + 2 * (lane & 3);
        body(row, column, c[r][n][0], c[r][n][1]);
        body(row + 8, column, c[r][n][2], c[r][n][3]);
      }
    }
  }
};
// The block of a warp among 64 columns.
struct OwnBlock {
  __device__ explicit OwnBlock(int warp) : row(warp / 4 * 32), column(warp % 4 * 16) {}
  int row, column;
};

// A layer's weights in shared memory: M, V, P and of each head Q and K.
template <int score_tiles>
struct SideMaps {
  using S = Sides<score_tiles>;
  static constexpr int count = 3 + 2 * heads;
  const Half* shared;
  Scale m_scale, v_scale, p_scale, side_scale[2 * heads];

  __device__ const Half* m() const { return shared; }
  __device__ const Half* v() const { return shared + matrix_halves; }
  __device__ const Half* p() const { return shared + 2 * matrix_halves; }
  // Q of head h is side 2 h, K the one behind it.
  __device__ const Half* side(int index) const {
    return shared + 3 * matrix_halves + index * S::matrix;
  }
};
// `slots`: 32 for each.
template <int score_tiles>
__device__ inline SideMaps<score_tiles> load_side_maps(Half* shared, uint32_t* slots,
                                                       const Layer& layer, const float* folded,
                                                       int warp, int lane) {
  using S = Sides<score_tiles>;
  const float *maps = folded + layer.maps, *scores = folded + layer.scores;
  constexpr int size = columns * columns;
  const auto load = [&](int index) {
    return load_map<false, data_threads, 0>(shared + index * matrix_halves, slots + 32 * index,
                                            maps + index * size, warp, lane);
  };
  SideMaps<score_tiles> out;
  out.shared = shared;
  out.m_scale = load(0);
  out.v_scale = load(1);
  out.p_scale = load(2);
#pragma unroll
  for (int i = 0; i < 2 * heads; ++i) {
    out.side_scale[i] = load_map<false, data_threads, 0, S::columns>(
        shared + 3 * matrix_halves + i * S::matrix, slots + 32 * (3 + i),
        scores + i * S::columns * columns, warp, lane);
  }
  return out;
}

// Turns (x, y), columns `column` and the next of node i, by RoPE's angle; back with sign -1.
__device__ inline void turn(const Layer& layer, int node, int column, float sign, float& x,
                            float& y) {
  if (layer.rotation == nullptr) return;
  const float2 angle = *reinterpret_cast<const float2*>(layer.rotation + node * columns + column);
  const float sine = sign * angle.y, before = x;
  x = before * angle.x - y * sine;
  y = before * sine + y * angle.x;
}

// What a side's biases may be multiplied with, so that sums with them have room.
template <int score_tiles>
__device__ inline float bias_scale(const float* biases, int nodes, int lane) {
  uint32_t most = 0;
  for (int i = lane; i < nodes * Sides<score_tiles>::columns; i += 32) {
    const uint32_t bits = __float_as_uint(biases[i]) & 0x7fffffffu;
    most = bits > most ? bits : most;
  }
  return scale_of(warp_maximum(most)).up * 0.5f;
}

// A side of all rows -> `to`, times `up`.
template <int score_tiles>
__device__ inline void make_side(Half* to, const Half* s, const Half* weights, const float* biases,
                                 float factor, float up, const Layer& layer, int warp, int lane) {
  using S = Sides<score_tiles>;
  for (int unit = warp; unit < BlockSums::row_groups * score_tiles; unit += data_warps) {
    const int first_row = unit / score_tiles * 32, first_column = unit % score_tiles * 16;
    BlockSums sums;
    sums.template add<columns, stride, false>(s + first_row * stride,
                                              weights + first_column * stride, lane);
    sums.for_pairs(lane, [&](int row, int column, float x, float y) {
      const int node = (first_row + row) % layer.nodes, at = first_column + column;
      const float2 bias = *reinterpret_cast<const float2*>(biases + node * S::columns + at);
      x = factor * x + up * bias.x;
      y = factor * y + up * bias.y;
      turn(layer, node, at, 1, x, y);
      store_halves(to + (first_row + row) * S::row_stride + at, x, y);
    });
  }
}

}  // namespace posattn::cuda::medium
