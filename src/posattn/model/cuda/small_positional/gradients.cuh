// The gradient of one layer. With du the errors of u and g_m = du M_m:
//   dM_0 = du^T r     dM_h = du^T (A_h r)     dA_h(i, j) = sum over samples of g_h,i . r_j
#pragma once

#include "posattn/model/cuda/small_positional/sums.cuh"

namespace posattn::cuda::positional {

// The transposed gradients of the maps. Warp w has the sixteen columns of r of its block as rows,
// and all columns of du for head w / 4, half of them for map 0; so each A_h r is mixed by one warp.
struct MapGradients {
  float head[8][4];  // [n]: eight columns of du, from 8 chunk(n) on
  float zero[4][4];  // the same for n < 4

  __device__ static int chunk(int n, const Thread& self) { return n ^ (4 * self.half); }

  __device__ void clear() {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        head[n][e] = 0;
        if (n < 4) zero[n][e] = 0;
      }
    }
  }

  // Adds a tile, whose own sum begins with zero: tensor cores lose a little with every addition to
  // a large sum, and what is added is the same when every tile has a block of its own.
  template <bool exact>
  __device__ void add_tile(const Tile<exact>& r, const Tile<exact>& errors, float factor,
                           const Attention<exact>& attention, const Thread& self) {
    MapGradients fresh;
    fresh.clear();
    fresh.add_rows<exact>(r.words[0], errors.words[0], attention.mixing(false, self.half, self),
                          self);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        head[n][e] += factor * fresh.head[n][e];
        if (n < 4) zero[n][e] += factor * fresh.zero[n][e];
      }
    }
  }

  // `out` is the maps of a folded gradient, M(out, in).
  __device__ void store(float* out, const Thread& self) const {
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      float* place = out + (8 * chunk(n, self) + 2 * self.t) * columns + 16 * self.block + self.g;
      store_one(place + (1 + self.half) * columns * columns, head[n]);
      if (n < 4) store_one(place, zero[n]);
    }
  }

 private:
  __device__ static void store_one(float* out, const float (&c)[4]) {
    out[0] = c[0];
    out[columns] = c[1];
    out[8] = c[2];
    out[columns + 8] = c[3];
  }

  // Multiplies rows of du with `mixed` and `plain`, both left operands over two row tiles from
  // `words` on.
  template <bool exact>
  __device__ void add_products(const uint32_t* errors, const Left<exact>& mixed,
                               const Left<exact>& plain, const Thread& self) {
    const int row = (self.lane >> 3 & 1) * 8 + (self.lane & 7), next = self.lane >> 4;
#pragma unroll
    for (int two = 0; two < 4; ++two) {
      Right<exact> b[2];
#pragma unroll
      for (int p = 0; p < (exact ? 2 : 1); ++p) {
        uint32_t four[4];
        load_matrices<true>(four,
                            errors + p * plane_words + word_of(row, chunk(2 * two, self) + next));
        b[0].part[p][0] = four[0], b[0].part[p][1] = four[1];
        b[1].part[p][0] = four[2], b[1].part[p][1] = four[3];
      }
#pragma unroll
      for (int term = 0; term < terms<exact>; ++term) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if (two < 2) multiply_term<exact>(zero[2 * two + i], plain, b[i], term);
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          multiply_term<exact>(head[2 * two + i], mixed, b[i], term);
        }
      }
    }
  }

  template <bool exact>
  __device__ static Left<exact> as_left(const float (&x)[4], const float (&y)[4]) {
    Left<exact> out;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const Pair<exact> first = pair_of<exact>(x[2 * i], x[2 * i + 1]);
      const Pair<exact> second = pair_of<exact>(y[2 * i], y[2 * i + 1]);
#pragma unroll
      for (int p = 0; p < (exact ? 2 : 1); ++p) {
        out.part[p][i] = first.part[p];
        out.part[p][2 + i] = second.part[p];
      }
    }
    return out;
  }

  template <bool exact>
  __device__ void add_rows(const uint32_t* r, const uint32_t* errors, const Mixing<exact>& mixing,
                           const Thread& self) {
    constexpr int planes = exact ? 2 : 1;
    // Reads two row tiles transposed: columns of r by rows.
    const int place =
        word_of((self.lane >> 4) * 8 + (self.lane & 7), 2 * self.block + (self.lane >> 3 & 1));
    const auto load_rows = [&](int row_tile) {
      Left<exact> out;
#pragma unroll
      for (int p = 0; p < planes; ++p) {
        load_matrices<true>(out.part[p], r + p * plane_words + row_tile * row_tile_words + place);
      }
      return out;
    };
    const Left<exact> ninth = load_rows(16);
    float ninth_mixed[2][4] = {};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll(exact ? 1 : 2)
      for (int two = 0; two < 4; ++two) {
        const int row_tile = 8 * half + 2 * two;
        const Left<exact> plain = load_rows(row_tile);
        float mixed[2][4] = {};
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          // Nodes of the sample, then node 8 of eight samples.
          Left<exact> nodes;
          Right<exact> within, to_ninth;
#pragma unroll
          for (int p = 0; p < planes; ++p) {
#pragma unroll
            for (int e = 0; e < 2; ++e) {
              nodes.part[p][e] = plain.part[p][2 * i + e];
              nodes.part[p][2 + e] = ninth.part[p][2 * half + e];
            }
            within.part[p][0] = mixing.inner[p];
            within.part[p][1] = mixing.from_sample(p, 2 * two + i, self);
            to_ninth.part[p][0] = mixing.to_sample(p, 2 * two + i, self);
            to_ninth.part[p][1] = two + i == 0 ? mixing.own_sample(p, self) : 0;
          }
          multiply<exact>(mixed[i], nodes, within);
          multiply<exact>(ninth_mixed[half], nodes, to_ninth);
        }
        add_products<exact>(errors + row_tile * row_tile_words, as_left<exact>(mixed[0], mixed[1]),
                            plain, self);
      }
    }
    add_products<exact>(errors + 16 * row_tile_words,
                        as_left<exact>(ninth_mixed[0], ninth_mixed[1]), ninth, self);
  }
};

// Makes the warp's part of a tile's dA, over its sixteen columns and eight samples.
template <bool exact>
struct AttentionGradient {
  static constexpr int planes = exact ? 2 : 1;
  // (head, i) by j; (head, i) by the samples of node 8; (head, samples of node 8) by j; and by
  // samples, where the diagonal counts.
  float inner[4] = {}, from[4] = {}, to[4] = {}, own[4] = {};
  Left<exact> ninth_errors;  // (head, sample) of node 8
  Right<exact> ninth_rows;   // by sample of node 8

  // heads_products: as multiply_and_mix shows them, node 8 first. r: the tile of rows.
  __device__ void add(int s, const Left<exact>& products, const uint32_t* r, const Thread& self) {
    // Registers of the products are (columns, nodes) of the heads; over columns they are left
    // operands with the heads one below the other.
    Left<exact> left;
#pragma unroll
    for (int p = 0; p < planes; ++p) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        left.part[p][(i & 1) * 2 + (i >> 1)] = transpose_matrix(products.part[p][i]);
      }
    }
    const uint32_t* row_tile = r + row_tile_of(s, self) * row_tile_words;
    const int place = word_of(self.g, 2 * self.block + (self.t >> 1)) + 2 * (self.t & 1);
    Right<exact> right;
#pragma unroll
    for (int p = 0; p < planes; ++p) {
      // Columns 4t .. 4t + 3: the even ones are of the first eight rows of products.
      const uint2 four = *reinterpret_cast<const uint2*>(row_tile + p * plane_words + place);
      right.part[p][0] = (four.x & 0xffffu) | four.y << 16;
      right.part[p][1] = four.x >> 16 | (four.y & 0xffff0000u);
    }
    if (s == 8) {
      ninth_errors = left;
      ninth_rows = right;
      multiply<exact>(own, left, right);
      return;
    }
    Right<exact> ninth_row;
    Left<exact> ninth_error;
#pragma unroll
    for (int p = 0; p < planes; ++p) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        ninth_error.part[p][i] = self.g == s ? ninth_errors.part[p][i] : 0;
        if (i < 2) ninth_row.part[p][i] = self.g == s ? ninth_rows.part[p][i] : 0;
      }
    }
#pragma unroll
    for (int term = 0; term < terms<exact>; ++term) {
      multiply_term<exact>(inner, left, right, term);
      multiply_term<exact>(from, left, ninth_row, term);
      multiply_term<exact>(to, ninth_error, right, term);
    }
  }

  // out [heads][nodes][nodes]
  __device__ void store(float* out, const Thread& self) const {
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      float* head = out + h * kernel_nodes * kernel_nodes;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int j = 2 * self.t + e;
        head[self.g * kernel_nodes + j] = inner[2 * h + e];
        const float to_ninth = sum_over_columns(to[2 * h + e]);
        if (self.g == 0) head[8 * kernel_nodes + j] = to_ninth;
      }
      const float from_ninth = sum_over_nodes(from[2 * h] + from[2 * h + 1]);
      if (self.t == 0) head[self.g * kernel_nodes + 8] = from_ninth;
      const bool diagonal = self.g >> 1 == self.t;
      const float corner = sum_over_nodes(sum_over_columns(!diagonal           ? 0.0f
                                                           : (self.g & 1) != 0 ? own[2 * h + 1]
                                                                               : own[2 * h]));
      if (self.lane == 0) head[8 * kernel_nodes + 8] = corner;
    }
  }
};

}  // namespace posattn::cuda::positional
