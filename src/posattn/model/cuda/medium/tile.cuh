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
  // Of a mixed tile: sixteen nodes of a sample by sixteen columns.
  static constexpr int mixed_share = (most_samples * 4 * node_tiles + warps - 1) / warps;
  // Of a 64 x 64 gradient.
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
constexpr int most_shared_bytes = 226 << 10;  // beside the kernels' own arrays

// A power of two and its reciprocal.
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
// Of A^T y: columns of A add up to the number of nodes at most, which is below 2^7.
constexpr float gathered_down = 1.0f / 128;

// Two neighbours of a matrix.
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
// A lane's place in the 16 x 16 of an operand. An A operand's matrix [m][k] is read upright, [k][m]
// turned and transposed; a B operand's matrix [n][k] turned, [k][n] upright and transposed.
__device__ inline int upright(int lane, int row_stride) {
  return (lane & 15) * row_stride + (lane >> 4) * 8;
}
__device__ inline int turned(int lane, int row_stride) {
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

// The weights of a slot's layer in shared memory, made once a block.
struct Maps {
  Half *m, *v, *p;
  Scale m_scale, v_scale, p_scale;
};
template <bool exact, int threads>
__device__ inline Maps load_maps(Half* shared, uint32_t* slots, const float* weights, int warp,
                                 int lane) {
  constexpr int warps = threads / 32;
  using Matrix = Rows<threads, columns>;
  Maps maps = {shared, shared + matrix_halves, shared + 2 * matrix_halves, {}, {}, {}};
#pragma unroll 1
  for (int i = 0; i < 3; ++i) {
    float4 x[Matrix::count];
    uint32_t most = 0;
#pragma unroll
    for (int j = 0; j < Matrix::count; ++j) {
      x[j] = Matrix::load(weights + i * columns * columns, columns, j);
      most = largest_of(most, x[j]);
    }
    put_largest(slots + 32 * i, most, warp, lane);
    __syncthreads();
    const Scale scale = scale_of(get_largest<warps>(slots + 32 * i, lane));
#pragma unroll
    for (int j = 0; j < Matrix::count; ++j) {
      Matrix::template store<exact, maps_plane>(shared + i * matrix_halves, x[j], scale.up, j);
    }
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
  const Half* a_place = rows + upright(lane, stride);
  const Half* b_place = weights + (transposed ? upright(lane, stride) : turned(lane, stride));
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

// Mixing, z = A v or A^T v: a warp takes sixteen nodes of a sample and sixteen columns at a time.
template <bool exact, int node_tiles, bool transposed>
struct Mixing {
  using S = Sizes<exact, node_tiles>;
  const Half *attention, *v;
  int nodes, samples, warp, lane;

  struct Place {
    int sample, node, column;
  };
  __device__ static Place place(int unit) {
    const int rest = unit / 4;
    return {rest / node_tiles, rest % node_tiles * 16, unit % 4 * 16};
  }
  __device__ int units() const { return samples * 4 * node_tiles; }

  __device__ void mix(float (&c)[2][4], int unit) const {
    const Place at = place(unit);
    const Half* a_place =
        attention + at.column / 32 * S::attention_halves +
        (transposed ? turned(lane, S::attention_stride) + at.node
                    : upright(lane, S::attention_stride) + at.node * S::attention_stride);
    const Half* b_place = v + at.sample * nodes * stride + at.column + upright(lane, stride);
    clear(c);
#pragma unroll
    for (int k = 0; k < 16 * node_tiles; k += 16) {
      const Operand<exact> a = load_operand<exact, transposed, heads * S::attention_halves>(
          a_place + (transposed ? k * S::attention_stride : k));
      multiply(c, a, load_operand<exact, true, S::plane>(b_place + k * stride));
    }
  }
  __device__ void store(Half* to, const float (&c)[2][4], float factor, int unit) const {
    const Place at = place(unit);
    const int node = at.node + (lane >> 2);
    Half* place = to + (at.sample * nodes + node) * stride + at.column + 2 * (lane & 3);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float(&x)[4] = c[n];
      if (node < nodes) store_pair<exact, S::plane>(place + 8 * n, factor * x[0], factor * x[1]);
      if (node + 8 < nodes) {
        store_pair<exact, S::plane>(place + 8 * n + 8 * stride, factor * x[2], factor * x[3]);
      }
    }
  }

  __device__ void mix_to(Half* to, float factor) const {
#pragma unroll 2
    for (int unit = warp; unit < units(); unit += S::warps) {
      float c[2][4];
      mix(c, unit);
      store(to, c, factor, unit);
    }
  }
  // The same where others still read what lies at `to`: there are barriers in it.
  __device__ void mix_in_place(Half* to, float factor) const {
    float c[S::mixed_share][2][4];
#pragma unroll
    for (int i = 0; i < S::mixed_share; ++i) {
      if (warp + i * S::warps < units()) mix(c[i], warp + i * S::warps);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < S::mixed_share; ++i) {
      if (warp + i * S::warps < units()) store(to, c[i], factor, warp + i * S::warps);
    }
  }
};

}  // namespace posattn::cuda::medium
