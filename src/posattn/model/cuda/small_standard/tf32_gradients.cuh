// Gradients of the weights of a layer l >= 1, for tf32, sums over the samples and nodes of tiles:
//   maps:   dM_m = sum du_i^T s_m,i, s_0 = r, s_h,i = sum_j A_h,ij r_j
//   scores: dG_h = sum r_i^T t_h,i,  t_h,i = sum_j ds_h,ij r_j;           dg_h = sum_i t_h,i
// Work is shared as in small_positional/gradients.cuh: warp w has the sixteen columns of r of its
// block as rows, and all columns of du (or r) for head w / 4, half of them for map 0.
#pragma once

#include "posattn/model/cuda/small_positional/sums.cuh"
#include "posattn/model/cuda/small_standard/tf32_attention.cuh"

namespace posattn::cuda::standard_tf32 {

template <bool with_map>
struct SampleGradients {
  float head[8][4];                 // [n]: eight columns, from 8 chunk(n) on
  float zero[with_map ? 4 : 1][4];  // map 0: the same for n < 4
  float vector[2];                  // sums of the mixed rows: columns g and g + 8 of the block

  __device__ static int chunk(int n, const Thread& self) { return n ^ (4 * self.half); }

  __device__ void clear() {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        head[n][e] = 0;
        if (with_map && n < 4) zero[n][e] = 0;
      }
    }
    vector[0] = vector[1] = 0;
  }

  // Adds a tile, whose own sum begins with zero. `left`: du or r. Mixed rows become halves times
  // `narrow`; `factor` and `vector_factor` make numbers of what is added.
  __device__ void add_tile(const Tile<false>& r, const Tile<false>& left,
                           const SampleAttention& attention, float narrow, float factor,
                           float vector_factor, const Thread& self) {
    SampleGradients fresh;
    fresh.clear();
    fresh.add_rows(r.words[0], left.words[0], attention, narrow, self);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        head[n][e] += factor * fresh.head[n][e];
        if (with_map && n < 4) zero[n][e] += factor * fresh.zero[n][e];
      }
    }
    if constexpr (!with_map) {
#pragma unroll
      for (int e = 0; e < 2; ++e) vector[e] += vector_factor * sum_over_nodes(fresh.vector[e]);
    }
  }

  // Writes gradients [column of left][column of r]: of the heads, and of map 0.
  __device__ void store(float* of_heads, float* of_map, const Thread& self) const {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const int place = (8 * chunk(n, self) + 2 * self.t) * columns + 16 * self.block + self.g;
      store_one(of_heads + self.half * columns * columns + place, head[n]);
      if constexpr (with_map) {
        if (n < 4) store_one(of_map + place, zero[n]);
      }
    }
  }
  // dg [heads][64]
  __device__ void store_vector(float* out, const Thread& self) const {
    if (self.t != 0) return;
    float* place = out + self.half * columns + 16 * self.block + self.g;
    place[0] = vector[0];
    place[8] = vector[1];
  }

 private:
  __device__ static void store_one(float* out, const float (&c)[4]) {
    out[0] = c[0];
    out[columns] = c[1];
    out[8] = c[2];
    out[columns + 8] = c[3];
  }

  __device__ void add_products(const uint32_t* left, const Left<false>& mixed,
                               const Left<false>& plain, const Thread& self) {
    const int row = (self.lane >> 3 & 1) * 8 + (self.lane & 7), next = self.lane >> 4;
#pragma unroll
    for (int two = 0; two < 4; ++two) {
      uint32_t four[4];
      load_matrices<true>(four, left + word_of(row, chunk(2 * two, self) + next));
      const Right<false> b[2] = {{{{four[0], four[1]}}}, {{{four[2], four[3]}}}};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        if constexpr (with_map) {
          if (two < 2) multiply<false>(zero[2 * two + i], plain, b[i]);
        }
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) multiply<false>(head[2 * two + i], mixed, b[i]);
    }
  }

  __device__ Left<false> mixed_left(const float (&x)[4], const float (&y)[4], float narrow) {
    if constexpr (!with_map) {
      vector[0] += (x[0] + x[1]) + (y[0] + y[1]);
      vector[1] += (x[2] + x[3]) + (y[2] + y[3]);
      return {
          {{pack_halves(x[0] * narrow, x[1] * narrow), pack_halves(x[2] * narrow, x[3] * narrow),
            pack_halves(y[0] * narrow, y[1] * narrow), pack_halves(y[2] * narrow, y[3] * narrow)}}};
    } else {  // A mean is no larger than its terms.
      return {{{pack_halves(x[0], x[1]), pack_halves(x[2], x[3]), pack_halves(y[0], y[1]),
                pack_halves(y[2], y[3])}}};
    }
  }

  __device__ void add_rows(const uint32_t* r, const uint32_t* left,
                           const SampleAttention& attention, float narrow, const Thread& self) {
    const int h = self.half;
    // Reads two row tiles transposed: columns of r by rows.
    const int place =
        word_of((self.lane >> 4) * 8 + (self.lane & 7), 2 * self.block + (self.lane >> 3 & 1));
    Left<false> ninth;
    load_matrices<true>(ninth.part[0], r + 16 * row_tile_words + place);
    float ninth_mixed[2][4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint32_t own = attention.own_samples(half, h, self);
#pragma unroll 2
      for (int two = 0; two < 4; ++two) {
        const int row_tile = 8 * half + 2 * two;
        Left<false> plain;
        load_matrices<true>(plain.part[0], r + row_tile * row_tile_words + place);
        float mixed[2][4] = {};
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const Mixing<false> mixing = attention.mixing<false>(row_tile + i, h, self);
          // Nodes of the sample, then node 8 of eight samples.
          const Left<false> nodes = {{{plain.part[0][2 * i], plain.part[0][2 * i + 1],
                                       ninth.part[0][2 * half], ninth.part[0][2 * half + 1]}}};
          const Right<false> within = {
              {{mixing.inner[0], mixing.from_sample(0, 2 * two + i, self)}}};
          const Right<false> to_ninth = {
              {{mixing.to_sample(0, 2 * two + i, self), two + i == 0 ? own : 0}}};
          multiply<false>(mixed[i], nodes, within);
          multiply<false>(ninth_mixed[half], nodes, to_ninth);
        }
        add_products(left + row_tile * row_tile_words, mixed_left(mixed[0], mixed[1], narrow),
                     plain, self);
      }
    }
    add_products(left + 16 * row_tile_words, mixed_left(ninth_mixed[0], ninth_mixed[1], narrow),
                 ninth, self);
  }
};

}  // namespace posattn::cuda::standard_tf32
