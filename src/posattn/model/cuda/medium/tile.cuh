// What the kernels of layer.h work on: matrices of halves in shared memory, their products on the
// tensor core, and the powers of two that keep numbers within a half's range.
//
// A number x lies in shared memory as half(x scale) with a power of two for each matrix and tile,
// so that the largest is between 2^14 and 2^15; for fp32 the rest half(x scale - that) lies in a
// second plane. So tf32's ten bits, or 21 and more, are kept down to 2^-28 of the largest.
// A product of 64 terms is below 2^36 and becomes an operand again times 2^-22; a mean (A v) needs
// no more room than its terms, and attention, at most one, has the fixed scale 2^14.
#pragma once

#include "posattn/kernels/cuda/primitives.cuh"
#include "posattn/model/cuda/medium/layer.h"

namespace posattn::cuda::medium {

using Half = uint16_t;

// 144 bytes: eight rows start in different banks, which is what load_matrices needs.
constexpr int stride = columns + 8;
constexpr int matrix_halves = columns * stride;
constexpr int maps_plane = 3 * matrix_halves;

// Sizes of a kernel for up to 16 `node_tiles` nodes: 16 `row_tiles` rows are a tile, two warps have
// sixteen rows, one for each half of the columns.
template <bool exact, int node_tiles>
struct Sizes {
  static constexpr int row_tiles = node_tiles <= 3   ? 8
                                   : exact           ? node_tiles
                                   : node_tiles == 4 ? 8
                                                     : 9;
  static constexpr int rows = 16 * row_tiles;
  static constexpr int warps = 2 * row_tiles;
  static constexpr int threads = 32 * warps;
  static constexpr int planes = exact ? 2 : 1;
  static constexpr int fewest = node_tiles == 1 ? fewest_nodes : 16 * node_tiles - 15;
  static constexpr int most_samples = rows / fewest;
  static constexpr int attention_stride = 16 * node_tiles + 8;
  static constexpr int attention_halves = 16 * node_tiles * attention_stride;  // of a head, a plane
  // Matrices of 16 x 16 of attention's gradient, of all heads: how many a warp has.
  static constexpr int attention_tiles = heads * node_tiles * node_tiles;
  static constexpr int attention_share = (attention_tiles + warps - 1) / warps;
  // How many units of mixing (sixteen nodes of a sample by sixteen columns) a warp has.
  static constexpr int mixed_share = (most_samples * 4 * node_tiles + warps - 1) / warps;
  // How many 16 x 16 parts of a 64 x 64 gradient a warp has.
  static constexpr int gradient_share = (16 + warps - 1) / warps;
  // Rows that a buffer needs, of any number of nodes: products read whole sixteens of the last
  // sample's nodes.
  static constexpr int stored_rows() {
    int most = rows;
    for (int nodes = fewest; nodes <= 16 * node_tiles; ++nodes) {
      const int needed = (rows / nodes - 1) * nodes + 16 * node_tiles;
      most = needed > most ? needed : most;
    }
    return most;
  }
  static constexpr int plane = stored_rows() * stride;
  static constexpr int buffer = planes * plane;
  static constexpr int attention_buffer = planes * heads * attention_halves;
  static constexpr int maps_buffer = planes * 3 * matrix_halves;
  // Bytes of shared memory with so many buffers of halves and of rows as they come.
  static constexpr int shared_bytes(int buffers, int copies) {
    return 2 * (buffers * buffer + attention_buffer + maps_buffer) + copies * 4 * rows * columns;
  }
};
constexpr int most_shared_bytes = 226 << 10;  // without the kernels' static arrays

struct Scale {
  float up, down;
};
__device__ inline float power_of_two(int exponent) {
  return __uint_as_float(static_cast<uint32_t>(127 + exponent) << 23);
}
// For numbers up to the one with these bits. Limited so that two of them are no overflow.
__device__ inline Scale scale_of(uint32_t largest) {
  int exponent = 14 + 127 - static_cast<int>(largest >> 23);
  exponent = exponent > 60 ? 60 : exponent < -60 ? -60 : exponent;
  return {power_of_two(exponent), power_of_two(-exponent)};
}
constexpr float attention_up = 16384, attention_down = 1.0f / 16384;
constexpr float product_down = 1.0f / (1 << 22);
// The factor of A^T y: columns of A add up to the number of nodes at most, which is below 2^7.
constexpr float gathered_down = 1.0f / 128;

// Stores two neighbours of a matrix.
template <bool exact, int plane>
__device__ inline void store_pair(Half* place, float x, float y) {
  const uint32_t high = pack_halves(x, y);
  *reinterpret_cast<uint32_t*>(place) = high;
  if constexpr (exact) {
    const float2 rounded = unpack_halves(high);
    *reinterpret_cast<uint32_t*>(place + plane) = pack_halves(x - rounded.x, y - rounded.y);
  }
}

// What four load_matrices give: an A operand of 16 x 16, or two B operands of 16 x 8.
template <bool exact>
struct Operand {
  uint32_t high[4], low[exact ? 4 : 1];
};
template <bool exact, bool transposed, int plane>
__device__ inline Operand<exact> load_operand(const Half* place) {
  Operand<exact> out;
  load_matrices<transposed>(out.high, place);
  if constexpr (exact) load_matrices<transposed>(out.low, place + plane);
  return out;
}
// A lane's row for load_matrices: an operand of 16 x 16 is four blocks of 8 x 8. block_place takes
// the blocks column by column, swapped_block_place row by row. An A operand's matrix [m][k] is read
// by block_place, its transpose [k][m] by swapped_block_place and transposed; a B operand's matrix
// [n][k] by swapped_block_place, its transpose [k][n] by block_place and transposed.
__device__ inline int block_place(int lane, int row_stride) {
  return (lane & 15) * row_stride + (lane >> 4) * 8;
}
__device__ inline int swapped_block_place(int lane, int row_stride) {
  return ((lane & 7) + (lane >> 4) * 8) * row_stride + ((lane >> 3) & 1) * 8;
}

// c += A [B0 | B1]
template <bool exact>
__device__ inline void multiply(float (&c)[2][4], const Operand<exact>& a,
                                const Operand<exact>& b) {
  const auto add = [&](const uint32_t* x, const uint32_t* y) {
    mma_f16(c[0], x[0], x[1], x[2], x[3], y[0], y[1]);
    mma_f16(c[1], x[0], x[1], x[2], x[3], y[2], y[3]);
  };
  if constexpr (exact) {
    add(a.low, b.high);
    add(a.high, b.low);
  }
  add(a.high, b.high);
}

__device__ inline void clear(float (&c)[2][4]) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) c[n][e] = 0;
  }
}
// to += factor c
__device__ inline void add_scaled(float (&to)[2][4], const float (&c)[2][4], float factor) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) to[n][e] += factor * c[n][e];
  }
}

// The sixteen rows and 32 columns of a tile that a warp has.
struct WarpTile {
  __device__ explicit WarpTile(int warp) : row(warp / 2 * 16), column(warp % 2 * 32) {}
  __device__ int place() const { return row * stride + column; }
  int row, column;
};

// c[pair] += rows W^T (W [out][in]; `transposed`: rows W) for sixteen rows and 32 columns: the
// warp's. `rows` and `weights` are at their first row and column.
template <bool exact, bool transposed, int plane>
__device__ inline void multiply_rows(float (&c)[2][2][4], const Half* rows, const Half* weights,
                                     int lane) {
  const Half* a_place = rows + block_place(lane, stride);
  const Half* b_place =
      weights + (transposed ? block_place(lane, stride) : swapped_block_place(lane, stride));
#pragma unroll
  for (int k = 0; k < columns; k += 16) {
    const Operand<exact> a = load_operand<exact, false, plane>(a_place + k);
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      const Half* place =
          transposed ? b_place + k * stride + 16 * pair : b_place + 16 * pair * stride + k;
      multiply(c[pair], a, load_operand<exact, transposed, maps_plane>(place));
    }
  }
}

// The warp's sixteen rows by 32 columns -> shared memory.
template <bool exact, int plane>
__device__ inline void store_rows(Half* to, const float (&c)[2][2][4], float factor, int lane) {
  Half* place = to + (lane >> 2) * stride + 2 * (lane & 3);
#pragma unroll
  for (int pair = 0; pair < 2; ++pair) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float(&x)[4] = c[pair][n];
      Half* at = place + 16 * pair + 8 * n;
      store_pair<exact, plane>(at, factor * x[0], factor * x[1]);
      store_pair<exact, plane>(at + 8 * stride, factor * x[2], factor * x[3]);
    }
  }
}

}  // namespace posattn::cuda::medium
