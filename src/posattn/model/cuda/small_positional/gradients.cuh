// The gradient of one layer. With du the errors of u and g_m = du M_m:
//   dM_0 = du^T r     dM_h = du^T (A_h r)     dA_h(i, j) = sum over samples of g_h,i . r_j
#pragma once

#include "posattn/model/cuda/small_positional/parts.cuh"

namespace posattn::cuda::positional {

// The transposed gradients of the maps. Warp w has the 16 columns 16 (w / 2) .. of r as rows and
// all columns of du for head w % 2, and half of them for map 0; so each A_h r is mixed by one warp.
struct MapGradients {
  float head[8][4];  // [2 p + odd]: columns 16 block(p) + 2 n + odd of du
  float zero[4][4];  // the same for p < 2

  __device__ static int block(int p, int h) { return p ^ (2 * h); }

  __device__ void clear() {
#pragma unroll
    for (int u = 0; u < 8; ++u) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        head[u][e] = 0;
        if (u < 4) zero[u][e] = 0;
      }
    }
  }
  __device__ void add(const MapGradients& other) {
#pragma unroll
    for (int u = 0; u < 8; ++u) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        head[u][e] += other.head[u][e];
        if (u < 4) zero[u][e] += other.zero[u][e];
      }
    }
  }

  // Adds a tile, whose own sum begins with zero: tensor cores lose a little with every addition to
  // a large sum, and what is added is the same when every tile has a block of its own.
  template <bool exact, int N>
  __device__ void add_tile(const float* rows, const float* errors,
                           const AttentionRows<N>& attention, const Thread& self) {
    MapGradients fresh;
    fresh.clear();
    if constexpr (exact) {
#pragma unroll 1
      for (int half = 0; half < 2; ++half) {
        fresh.add_samples<exact, N, 1>(rows, errors, attention, half, self);
      }
    } else {
      fresh.add_samples<exact, N, 2>(rows, errors, attention, 0, self);
    }
    add(fresh);
  }

  // out: the maps of a folded gradient, M(out, in).
  __device__ void store(float* out, const Thread& self) const {
    const int h = self.warp & 1, in = 16 * (self.warp >> 1) + 2 * self.g;
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      float* place = out + (16 * block(u >> 1, h) + 4 * self.t + (u & 1)) * tile_columns + in;
      store_pairs(place + (1 + h) * map_floats, head[u]);
      if (u < 4) store_pairs(place, zero[u]);
    }
  }

 private:
  // Sample groups half, half + 1, ...: samples t + 4 group and t + 4 group + 8 of every lane.
  template <bool exact, int N, int groups>
  __device__ void add_samples(const float* rows, const float* errors,
                              const AttentionRows<N>& attention, int first_group,
                              const Thread& self) {
    const int h = self.warp & 1;
    const NodeChunks own(self.t, 8 * (self.warp >> 1) + self.g), all(self.t, self.g);
    rows += first_group * 512;
    errors += first_group * 512;
    // Left operands: {x, z, y, w} of a chunk. The maximum changes nothing, rows come from a ReLU;
    // it makes the compiler keep this order in registers instead of copying for every product.
    float4 r[N][groups];
#pragma unroll
    for (int j = 0; j < N; ++j) {
#pragma unroll
      for (int q = 0; q < groups; ++q) {
        const float4 chunk = load4(rows + own.at(j) + q * 512);
        r[j][q] =
            make_float4(fmaxf(chunk.x, 0), fmaxf(chunk.z, 0), fmaxf(chunk.y, 0), fmaxf(chunk.w, 0));
      }
    }
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float row[AttentionRows<N>::stride];
      attention.row(h, i, row);
#pragma unroll
      for (int q = 0; q < groups; ++q) {
        float4 mixed = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int j = 0; j < N; ++j) {
          mixed.x += row[j] * r[j][q].x;
          mixed.y += row[j] * r[j][q].y;
          mixed.z += row[j] * r[j][q].z;
          mixed.w += row[j] * r[j][q].w;
        }
        mixed = make_float4(operand<exact>(mixed.x), operand<exact>(mixed.y),
                            operand<exact>(mixed.z), operand<exact>(mixed.w));
#pragma unroll
        for (int two = 0; two < 2; ++two) {
          const float* errors_of_node = errors + all.at(i) + q * 512 + (two ^ h) * 64;
          const float4 v = load4(errors_of_node), w = load4(errors_of_node + 32);
          const float2 b[4] = {make_float2(v.x, v.y), make_float2(v.z, v.w), make_float2(w.x, w.y),
                               make_float2(w.z, w.w)};
          float(*const c[4])[4] = {&head[4 * two], &head[4 * two + 1], &head[4 * two + 2],
                                   &head[4 * two + 3]};
          multiply<exact, 4>(c, mixed, b);
          if (two == 0) {
            float(*const d[4])[4] = {&zero[0], &zero[1], &zero[2], &zero[3]};
            multiply<exact, 4>(d, r[i][q], b);
          }
        }
      }
    }
  }

  __device__ static void store_pairs(float* out, const float (&c)[4]) {
    *reinterpret_cast<float2*>(out) = make_float2(c[0], c[2]);
    *reinterpret_cast<float2*>(out + 2 * tile_columns) = make_float2(c[1], c[3]);
  }
};

// The warp's part of a tile's dA, over its eight columns. Rows are (head, node i) for i < 8,
// columns j < 8; with nine nodes there are three more pieces: column 8, rows (head, 8), and (head,
// 8, 8).
template <int N>
struct AttentionGradient {
  static constexpr bool has_ninth = N > 8;
  static constexpr int pieces = has_ninth ? 3 : 1;
  static constexpr int part_floats = fused_heads * N * N;

  // Writes the part into the scratch, [H][N][N]. products[1 + h] are the g_h of the thread's
  // columns. The scratch is the warp's own and holds every second column of 8 / parts sample groups
  // at a time: [node][32 / parts lanes, swizzled][4].
  template <int parts>
  static constexpr int scratch_floats = N * 128 / parts;
  template <bool exact, int parts>
  __device__ static void make(const float (&products)[fused_maps][N][4], const float* rows,
                              float* scratch, const Thread& self) {
    static_assert(part_floats <= scratch_floats<parts>);
    float sums[pieces][4] = {};  // C fragments; in the second, column 0 counts, then rows 0 and 8
    add_products<exact, parts>(sums, products, rows, scratch, self);
#pragma unroll
    for (int h = 0; h < fused_heads; ++h) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int j = 2 * self.t + e;
        if (self.g < N && j < N) scratch[(h * N + self.g) * N + j] = sums[0][2 * h + e];
        if constexpr (has_ninth) {
          if (self.g == 0) scratch[(h * N + 8) * N + j] = sums[2][2 * h + e];
        }
      }
      if constexpr (has_ninth) {
        if (self.t == 0) scratch[(h * N + self.g) * N + 8] = sums[1][2 * h];
        const float4 r = load4(rows + tile_offset(8, self.g, self.chunk()));
        const float(&c)[4] = products[1 + h][8];
        float corner = sum_over_samples(c[0] * r.x + c[1] * r.z + c[2] * r.y + c[3] * r.w);
        corner += __shfl_xor_sync(0xffffffffu, corner, 1);
        corner += __shfl_xor_sync(0xffffffffu, corner, 2);
        if (self.lane == 0) scratch[(h * N + 8) * N + 8] = corner;
      }
    }
  }

 private:
  template <int parts>
  __device__ static int scratch_chunk(int node, int lane) {
    return node * (128 / parts) + ((lane ^ ((node & 1) << 2)) << 2);
  }

  template <bool exact, int parts>
  __device__ static void add_products(float (&sums)[pieces][4],
                                      const float (&products)[fused_maps][N][4], const float* rows,
                                      float* scratch, const Thread& self) {
    constexpr int groups = 8 / parts;
    const int node = min(self.g, N - 1);
#pragma unroll
    for (int step = 0; step < 2 * parts; ++step) {
      const int odd = step / parts, first_group = step % parts * groups;
      if (parts == 1 || self.g / groups == step % parts) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
          // The left operand: rows (0, i) and (1, i), samples g and g + 8.
          store4(scratch + scratch_chunk<parts>(i, self.lane % (4 * groups)),
                 operand<exact>(products[1][i][odd]), operand<exact>(products[2][i][odd]),
                 operand<exact>(products[1][i][2 + odd]), operand<exact>(products[2][i][2 + odd]));
        }
      }
      __syncwarp();
#pragma unroll
      for (int s = 0; s < groups; ++s) {
        const int group = first_group + s;
        const float4 a = load4(scratch + scratch_chunk<parts>(node, 4 * s + self.t));
        const float2 b = samples_of(rows + tile_offset(node, group, self.chunk()) + 2 * odd);
        if constexpr (has_ninth) {
          // What does not count may repeat what does.
          const float2 ninth = samples_of(rows + tile_offset(8, group, self.chunk()) + 2 * odd);
          float(*const c[2])[4] = {&sums[0], &sums[1]};
          const float2 two[2] = {b, ninth};
          multiply<exact, 2>(c, a, two);
          multiply<exact>(sums[2], load4(scratch + scratch_chunk<parts>(8, 4 * s + self.t)), b);
        } else {
          multiply<exact>(sums[0], a, b);
        }
      }
      __syncwarp();
    }
  }
  __device__ static float2 samples_of(const float* half_chunk) {
    return *reinterpret_cast<const float2*>(half_chunk);
  }
};

// The sum over the warps' parts of a dA, in order, of number threadIdx.x of [H][N][N]; part w is at
// parts + w * stride.
template <int N>
__device__ inline float sum_over_warps(const float* parts, int stride) {
  const int k = threadIdx.x;
  if (k >= AttentionGradient<N>::part_floats) return 0;
  float sum = 0;
#pragma unroll
  for (int w = 0; w < tile_warps; ++w) sum += parts[w * stride + k];
  return sum;
}
// Writes what sum_over_warps gives to a folded gradient.
template <int N>
__device__ inline void store_attention(float* out, float value, int nodes) {
  static_assert(AttentionGradient<N>::part_floats <= tile_threads);
  const int k = threadIdx.x, h = k / (N * N), i = k / N % N, j = k % N;
  if (h < fused_heads && i < nodes && j < nodes) out[(h * nodes + i) * nodes + j] = value;
}

}  // namespace posattn::cuda::positional
