// Scores of a tile of halves and their gradients, and softmax, for tf32.
//
// Scores z_h,i . r_j are products over columns. A warp has z of its sixteen columns and eight
// samples as accumulators (column, node), which transposed are left operands, rows (head, node i);
// what the four blocks of columns give is added up by the warp that goes on with the sample. Its
// accumulators (node i, node j) are, as halves, right operands of the mixing.
#pragma once

#include "posattn/model/cuda/small_positional/sums.cuh"
#include "posattn/model/cuda/small_standard/tf32_attention.cuh"

namespace posattn::cuda::standard_tf32 {

// Keeps products over columns for all samples, by blocks of columns.
struct alignas(16) ScoreParts {
  static constexpr int from = 0, to = 16, own = 32;  // (i, 8), (8, j), (8, 8) by heads
  float4 inner[4][tile_samples][32];
  float ninth[4][tile_samples][36];
};

// The warp's part of them: products of what multiply_samples shows with the rows of a tile.
struct ScoreProducts {
  Left<false> ninth_left;
  Right<false> ninth_right;

  __device__ void add(int s, const Left<false>& products, const uint32_t* r, ScoreParts& parts,
                      const Thread& self) {
    Left<false> left;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      left.part[0][(i & 1) * 2 + (i >> 1)] = transpose_matrix(products.part[0][i]);
    }
    const uint32_t* row_tile = r + row_tile_of(s, self) * row_tile_words;
    const int place = word_of(self.g, 2 * self.block + (self.t >> 1)) + 2 * (self.t & 1);
    // Columns 4t .. 4t + 3: the even ones are of the first eight rows of products.
    const uint2 four = *reinterpret_cast<const uint2*>(row_tile + place);
    Right<false> right;
    right.part[0][0] = (four.x & 0xffffu) | four.y << 16;
    right.part[0][1] = four.x >> 16 | (four.y & 0xffff0000u);
    if (s == 8) {
      ninth_left = left;
      ninth_right = right;
      float own[4] = {};
      multiply<false>(own, left, right);
      if (self.g >> 1 == self.t) {
        float* to = parts.ninth[self.block][8 * self.half + self.g] + ScoreParts::own;
        to[0] = (self.g & 1) != 0 ? own[1] : own[0];
        to[1] = (self.g & 1) != 0 ? own[3] : own[2];
      }
      return;
    }
    float inner[4] = {}, from[4] = {}, to[4] = {};
    multiply<false>(inner, left, right);
    multiply<false>(from, left, ninth_right);
    multiply<false>(to, ninth_left, right);
    const int sample = 8 * self.half + s;
    parts.inner[self.block][sample][self.lane] =
        make_float4(inner[0], inner[1], inner[2], inner[3]);
    float(&ninth)[36] = parts.ninth[self.block][sample];
    if (self.t == s >> 1) {
      ninth[ScoreParts::from + self.g] = (s & 1) != 0 ? from[1] : from[0];
      ninth[ScoreParts::from + 8 + self.g] = (s & 1) != 0 ? from[3] : from[2];
    }
    if (self.g == s) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        ninth[ScoreParts::to + 8 * (e >> 1) + 2 * self.t + (e & 1)] = to[e];
      }
    }
  }
};

__device__ inline float quad_maximum(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ inline float half_of(uint16_t bits) { return unpack_halves(bits).x; }

// A lane holds rows g and 8, columns 2t, 2t + 1 and 8 of a sample's matrix of one head.
struct SampleMatrix {
  float row[3], ninth[3];

  __device__ static SampleMatrix sum(const ScoreParts& parts, int sample, int h,
                                     const Thread& self) {
    SampleMatrix out = {};
#pragma unroll
    for (int b = 0; b < 4; ++b) {
      const auto* inner = reinterpret_cast<const float2*>(&parts.inner[b][sample][self.lane]) + h;
      const float(&rest)[36] = parts.ninth[b][sample];
      out.row[0] += inner->x;
      out.row[1] += inner->y;
      out.row[2] += rest[ScoreParts::from + 8 * h + self.g];
      out.ninth[0] += rest[ScoreParts::to + 8 * h + 2 * self.t];
      out.ninth[1] += rest[ScoreParts::to + 8 * h + 2 * self.t + 1];
      out.ninth[2] += rest[ScoreParts::own + h];
    }
    return out;
  }
  __device__ static SampleMatrix load(const SampleAttention& from, int sample, int h,
                                      const Thread& self) {
    const float2 inner = unpack_halves(from.inner[sample][h][self.lane]);
    const float2 ninth =
        unpack_halves(reinterpret_cast<const uint32_t*>(from.row[sample][h])[self.t]);
    return {{inner.x, inner.y, half_of(from.column[sample][h][self.g])},
            {ninth.x, ninth.y, half_of(from.own[sample][h])}};
  }
  __device__ void store(SampleAttention& to, int sample, int h, float factor,
                        const Thread& self) const {
    to.inner[sample][h][self.lane] = pack_halves(row[0] * factor, row[1] * factor);
    if (self.t == 0) {
      to.column[sample][h][self.g] = static_cast<uint16_t>(pack_halves(row[2] * factor, 0));
    }
    if (self.g == 0) {
      reinterpret_cast<uint32_t*>(to.row[sample][h])[self.t] =
          pack_halves(ninth[0] * factor, ninth[1] * factor);
    }
    if (self.lane == 0)
      to.own[sample][h] = static_cast<uint16_t>(pack_halves(ninth[2] * factor, 0));
  }

  __device__ void softmax(float down, uint32_t attended, const Thread& self) {
    const bool is_attended[3] = {(attended >> 2 * self.t & 1) != 0,
                                 (attended >> 2 * self.t & 2) != 0, (attended >> 8 & 1) != 0};
    for_rows([&](float(&x)[3]) {
#pragma unroll
      for (int k = 0; k < 3; ++k) x[k] = is_attended[k] ? x[k] * down : -INFINITY;
      const float most = fmaxf(quad_maximum(fmaxf(x[0], x[1])), x[2]);
#pragma unroll
      for (int k = 0; k < 3; ++k) x[k] = expf(x[k] - most);
      const float inverse = 1 / (sum_over_nodes(x[0] + x[1]) + x[2]);
#pragma unroll
      for (int k = 0; k < 3; ++k) x[k] *= inverse;
    });
  }
  // dA -> A (dA - sum_j A dA)
  __device__ void softmax_gradient(const SampleMatrix& attention) {
    gradient_row(row, attention.row);
    gradient_row(ninth, attention.ninth);
  }

 private:
  template <class Row>
  __device__ void for_rows(const Row& one) {
    one(row);
    one(ninth);
  }
  __device__ static void gradient_row(float (&d)[3], const float (&a)[3]) {
    const float sum = sum_over_nodes(a[0] * d[0] + a[1] * d[1]) + a[2] * d[2];
#pragma unroll
    for (int k = 0; k < 3; ++k) d[k] = a[k] * (d[k] - sum);
  }
};

// Makes scores alone, without mixing.
template <class Convert>
__device__ inline void multiply_scores(const Tile<false>& tile,
                                       const MapOperands<false, heads>& weights, ScoreParts& parts,
                                       const Thread& self, const Convert& convert) {
  ScoreProducts products;
  const auto add = [&](int s) {
    float c[heads][4];
    multiply_row_tile(c, tile.words[0] + row_tile_of(s, self) * row_tile_words, weights, self);
    convert(c);
    products.add(s, heads_as_left<false>(c), tile.words[0], parts, self);
  };
  add(8);
#pragma unroll 2
  for (int s = 0; s < 8; ++s) add(s);
}

// z = r G + g, narrowed: accumulators of r G -> numbers below 2^8.
struct ScoreNarrowing {
  Narrowing narrowing;
  float bias[heads][2];

  __device__ ScoreNarrowing(Range range, const Weights<false, heads>::Bounds& bounds,
                            const float* score_bias, const Thread& self)
      : narrowing(
            range.exponent + bounds.exponent,
            bounds.row * range.largest +
                bounds.constant * power_of_two(clamped(range.exponent + bounds.exponent, 120))) {
    const float up = power_of_two(narrowing.exponent);
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      const float2 g = *reinterpret_cast<const float2*>(score_bias + h * columns + self.column());
      bias[h][0] = g.x * up;
      bias[h][1] = g.y * up;
    }
  }
  __device__ void operator()(float (&c)[heads][4]) const {
#pragma unroll
    for (int h = 0; h < heads; ++h) {
#pragma unroll
      for (int e = 0; e < 4; ++e) c[h][e] = c[h][e] * narrowing.factor + bias[h][e >> 1];
    }
  }
};

}  // namespace posattn::cuda::standard_tf32
