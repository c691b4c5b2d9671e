// What the kernels of layers with attention from data add to tile.cuh: tiles of 144 rows and twelve
// warps, of which each has sixteen columns of a third of the rows. A head's attention is sixteen
// nodes of a sample at a time in a warp's registers: a *unit*.
//
// A is kept for backward as the operands of its products with v: of each unit and each sixteen keys
// 32 lanes with four registers of two halves, times attention_up.
#pragma once

#include "posattn/model/cuda/medium/rows.cuh"

namespace posattn::cuda::medium {

constexpr int data_rows = 144, data_warps = 12, data_threads = 32 * data_warps;
// Products read whole sixteens of the last sample's nodes.
constexpr int data_stored_rows = 152;
constexpr int data_buffer = data_stored_rows * stride;

// How many samples a tile has.
constexpr int data_samples(int nodes) {
  const int read = (nodes + 15) / 16 * 16;
  const int room = (data_stored_rows - read) / nodes + 1, full = data_rows / nodes;
  return room < full ? room : full;
}

// Units that a warp has, of any number of nodes.
template <int node_tiles>
constexpr int unit_share() {
  int most = 1;
  for (int nodes = fewest_nodes; nodes <= 16 * node_tiles; ++nodes) {
    if ((nodes + 15) / 16 != node_tiles) continue;
    const int share = (data_samples(nodes) * node_tiles + data_warps - 1) / data_warps;
    most = share > most ? share : most;
  }
  return most;
}

struct Unit {
  int sample, node;
  template <int node_tiles>
  __device__ static Unit of(int unit) {
    return {unit / node_tiles, unit % node_tiles * 16};
  }
};

// Where a unit's operands of A lie, 32 for each sixteen keys; `sample` among all slots'.
template <int node_tiles>
__device__ inline int64_t kept_place(int64_t sample, int head, int node) {
  return ((sample * heads + head) * node_tiles + node / 16) * node_tiles * 32;
}

using DataOperand = Operand<false>;
template <bool transposed>
__device__ inline DataOperand load_halves(const Half* place) {
  return load_operand<false, transposed, 0>(place);
}
__device__ inline void store_halves(Half* place, float x, float y) {
  store_pair<false, 0>(place, x, y);
}

// Weights in shared memory, 64 x 64 each, and what they were multiplied with.
struct DataMaps {
  static constexpr int count = 3 + heads;
  const Half* shared;
  Scale m_scale, v_scale, p_scale, g_scale[heads];

  __device__ const Half* m() const { return shared; }
  __device__ const Half* v() const { return shared + matrix_halves; }
  __device__ const Half* p() const { return shared + 2 * matrix_halves; }
  __device__ const Half* g(int head) const { return shared + (3 + head) * matrix_halves; }
};
// `slots` has 32 numbers for each matrix.
__device__ inline DataMaps load_data_maps(Half* shared, uint32_t* slots, const Layer& layer,
                                          const float* folded, int warp, int lane) {
  const auto load = [&](int index, const float* from) {
    return load_map<false, data_threads, 0>(shared + index * matrix_halves, slots + 32 * index,
                                            from, warp, lane);
  };
  const float *maps = folded + layer.maps, *scores = folded + layer.scores;
  constexpr int size = columns * columns;
  DataMaps out;
  out.shared = shared;
  out.m_scale = load(0, maps);
  out.v_scale = load(1, maps + size);
  out.p_scale = load(2, maps + 2 * size);
#pragma unroll
  for (int head = 0; head < heads; ++head) {
    out.g_scale[head] = load(3 + head, scores + head * size);
  }
  return out;
}

// A warp's sums: three times sixteen rows by sixteen columns.
struct RowSums {
  float c[3][2][4] = {};

  __device__ static int row(int warp) { return warp / 4 * 48; }
  __device__ static int column(int warp) { return warp % 4 * 16; }

  // Calls body(row, column, x, y) for two neighbours.
  template <class Body>
  __device__ void for_pairs(int warp, int lane, Body body) {
#pragma unroll
    for (int r = 0; r < 3; ++r) {
      const int at = row(warp) + 16 * r + (lane >> 2);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const int first = column(warp) + 8 * n + 2 * (lane & 3);
        body(at, first, c[r][n][0], c[r][n][1]);
        body(at + 8, first, c[r][n][2], c[r][n][3]);
      }
    }
  }
  __device__ void add(const RowSums& other, float factor) {
#pragma unroll
    for (int r = 0; r < 3; ++r) add_scaled(c[r], other.c[r], factor);
  }
  __device__ void store(Half* to, float factor, int warp, int lane) {
    for_pairs(warp, lane, [&](int row, int column, float x, float y) {
      store_halves(to + row * stride + column, factor * x, factor * y);
    });
  }
};

// sums += rows W^T (W [out][in]), or, `transposed`, rows W.
template <bool transposed>
struct RowProduct {
  RowSums& sums;
  const Half* weights;

  __device__ void add(const DataOperand (&rows)[3], int k, int warp, int lane) const {
    const int column = RowSums::column(warp);
    const Half* place =
        weights + (transposed ? k * stride + column + block_place(lane, stride)
                              : column * stride + k + swapped_block_place(lane, stride));
    const DataOperand b = load_halves<transposed>(place);
#pragma unroll
    for (int r = 0; r < 3; ++r) multiply(sums.c[r], rows[r], b);
  }
};
// Several products with the same rows, which are read once.
template <class... Products>
__device__ inline void multiply_data_rows(const Half* rows, int warp, int lane,
                                          Products... products) {
  const Half* place = rows + RowSums::row(warp) * stride + block_place(lane, stride);
#pragma unroll
  for (int k = 0; k < columns; k += 16) {
    DataOperand a[3];
#pragma unroll
    for (int r = 0; r < 3; ++r) a[r] = load_halves<false>(place + 16 * r * stride + k);
    (products.add(a, k, warp, lane), ...);
  }
}

// c = X Y^T for sixteen rows at x and 16 node_tiles rows at y, over `depth` columns.
template <int node_tiles, int depth>
__device__ inline void dot_rows(float (&c)[2 * node_tiles][4], const Half* x, const Half* y,
                                int lane) {
  constexpr int steps = depth / 16;
  DataOperand a[steps];
#pragma unroll
  for (int k = 0; k < steps; ++k) {
    a[k] = load_halves<false>(x + block_place(lane, stride) + 16 * k);
  }
#pragma unroll
  for (int pair = 0; pair < node_tiles; ++pair) {
    float sums[2][4] = {};
#pragma unroll
    for (int k = 0; k < steps; ++k) {
      const Half* place = y + 16 * pair * stride + swapped_block_place(lane, stride) + 16 * k;
      multiply(sums, a[k], load_halves<false>(place));
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      c[2 * pair][e] = sums[0][e];
      c[2 * pair + 1][e] = sums[1][e];
    }
  }
}

// Makes coefficients of a unit and sixteen keys, times `up`, an operand; and back.
__device__ inline DataOperand as_operand(const float (&first)[4], const float (&second)[4],
                                         float up) {
  DataOperand out;
  out.high[0] = pack_halves(first[0] * up, first[1] * up);
  out.high[1] = pack_halves(first[2] * up, first[3] * up);
  out.high[2] = pack_halves(second[0] * up, second[1] * up);
  out.high[3] = pack_halves(second[2] * up, second[3] * up);
  return out;
}
__device__ inline uint4 as_uint4(const DataOperand& x) {
  return make_uint4(x.high[0], x.high[1], x.high[2], x.high[3]);
}
__device__ inline DataOperand as_operand(uint4 x) { return {{x.x, x.y, x.z, x.w}, {}}; }
// Transposes it, so that keys are rows.
__device__ inline DataOperand transpose(const DataOperand& x) {
  return {{transpose_matrix(x.high[0]), transpose_matrix(x.high[2]), transpose_matrix(x.high[1]),
           transpose_matrix(x.high[3])},
          {}};
}

// c += A Y for sixteen columns `pairs` times, where A is an operand and Y sixteen rows.
template <int pairs>
__device__ inline void add_mixed(float (&c)[pairs][2][4], const DataOperand& a, const Half* y,
                                 int lane) {
#pragma unroll
  for (int pair = 0; pair < pairs; ++pair) {
    multiply(c[pair], a, load_halves<true>(y + 16 * pair + block_place(lane, stride)));
  }
}
// A unit's sums -> shared memory, those of nodes alone.
template <int pairs>
__device__ inline void store_mixed(Half* to, const float (&c)[pairs][2][4], float factor, Unit at,
                                   int nodes, int lane) {
  const int node = at.node + (lane >> 2);
  Half* place = to + (at.sample * nodes + node) * stride + 2 * (lane & 3);
#pragma unroll
  for (int pair = 0; pair < pairs; ++pair) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float(&x)[4] = c[pair][n];
      Half* there = place + 16 * pair + 8 * n;
      if (node < nodes) store_halves(there, factor * x[0], factor * x[1]);
      if (node + 8 < nodes) store_halves(there + 8 * stride, factor * x[2], factor * x[3]);
    }
  }
}

// Sums and maxima over a row of coefficients, which four lanes share.
__device__ inline float row_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ inline float row_maximum(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

}  // namespace posattn::cuda::medium
