// Products of a tile with a layer's maps, and the mixing over nodes, y_i = sum_j a(i, j) x_j, where
// a is A_h or, backward, its transpose. Accumulators of a row tile are (column, node); as halves
// they are left operands over the nodes, of one head or both. Node 8, whose rows lie apart, takes
// part by operands that are zero but for one sample.
#pragma once

#include "posattn/model/cuda/small_positional/weights.cuh"

namespace posattn::cuda::positional {

// Right operands over the nodes for one head: what a lane needs.
template <bool exact>
struct Mixing {
  uint32_t inner[exact ? 2 : 1];  // a(g, 2t), a(g, 2t + 1)
  uint32_t from[exact ? 2 : 1];   // a(g, 8)
  uint32_t to[exact ? 2 : 1];     // a(8, 2t), a(8, 2t + 1)
  uint32_t own[exact ? 2 : 1];    // a(8, 8)

  // Over node 8 of eight samples, for sample s: a(g, 8) where k = s.
  __device__ uint32_t from_sample(int p, int s, const Thread& self) const {
    return self.t == s >> 1 ? from[p] << 16 * (s & 1) : 0;
  }
  // From a sample's nodes to node 8 of eight samples: a(8, k) where n = s.
  __device__ uint32_t to_sample(int p, int s, const Thread& self) const {
    return self.g == s ? to[p] : 0;
  }
  // Mixes from node 8 of eight samples to node 8.
  __device__ uint32_t own_sample(int p, const Thread& self) const {
    return self.g >> 1 == self.t ? own[p] << 16 * (self.g & 1) : 0;
  }
};

// Keeps the operands of both heads in shared memory, once as A_h and once transposed.
template <bool exact>
struct alignas(16) Attention {
  static constexpr int planes = exact ? 2 : 1;
  uint4 operands[2][planes][heads][32];  // [transposed][part][head][lane]

  // By the first 128 threads; a barrier must follow. Absent nodes are zero.
  __device__ void load(const FusedLayer& layer, const float* attention) {
    if (threadIdx.x >= 128) return;
    const int transposed = static_cast<int>(threadIdx.x) >> 6;
    const int h = static_cast<int>(threadIdx.x) >> 5 & 1;
    const int lane = static_cast<int>(threadIdx.x) & 31, g = lane >> 2, t = lane & 3;
    const auto a = [&](int to, int from) {
      return transposed != 0 ? attention_of(layer, attention, h, from, to)
                             : attention_of(layer, attention, h, to, from);
    };
    const Pair<exact> inner = pair_of<exact>(a(g, 2 * t), a(g, 2 * t + 1));
    const Pair<exact> from = pair_of<exact>(a(g, 8), 0);
    const Pair<exact> to = pair_of<exact>(a(8, 2 * t), a(8, 2 * t + 1));
    const Pair<exact> own = pair_of<exact>(a(8, 8), 0);
#pragma unroll
    for (int p = 0; p < planes; ++p) {
      operands[transposed][p][h][lane] =
          make_uint4(inner.part[p], from.part[p], to.part[p], own.part[p]);
    }
  }

  __device__ Mixing<exact> mixing(bool transposed, int h, const Thread& self) const {
    Mixing<exact> out;
#pragma unroll
    for (int p = 0; p < planes; ++p) {
      const uint4 four = operands[transposed ? 1 : 0][p][h][self.lane];
      out.inner[p] = four.x, out.from[p] = four.y, out.to[p] = four.z, out.own[p] = four.w;
    }
    return out;
  }
};

// Multiplies a row tile with all maps: [map], accumulators (column, row).
template <bool exact, int count>
__device__ inline void multiply_row_tile(float (&c)[count][4], const uint32_t* row_tile,
                                         const MapOperands<exact, count>& weights,
                                         const Thread& self) {
  const int place = word_of(self.g, self.t);
  Right<exact> b[4];
#pragma unroll
  for (int p = 0; p < (exact ? 2 : 1); ++p) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const uint4 four = *reinterpret_cast<const uint4*>(row_tile + p * plane_words +
                                                         (i == 0 ? place : place ^ 16));
      b[2 * i].part[p][0] = four.x, b[2 * i].part[p][1] = four.y;
      b[2 * i + 1].part[p][0] = four.z, b[2 * i + 1].part[p][1] = four.w;
    }
  }
#pragma unroll
  for (int m = 0; m < count; ++m) {
#pragma unroll
    for (int e = 0; e < 4; ++e) c[m][e] = 0;
  }
#pragma unroll
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (int term = 0; term < terms<exact>; ++term) {
#pragma unroll
      for (int m = 0; m < count; ++m) {
        multiply_term<exact>(c[m], weights.left[m][step], b[step], term);
      }
    }
  }
}

// Makes the products of both heads a left operand over (head, node).
template <bool exact, int count>
__device__ inline Left<exact> heads_as_left(const float (&c)[count][4]) {
  constexpr int first = count - heads;  // a map 0 is not mixed
  Left<exact> out;
#pragma unroll
  for (int h = 0; h < heads; ++h) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const Pair<exact> pair = pair_of<exact>(c[first + h][2 * i], c[first + h][2 * i + 1]);
#pragma unroll
      for (int p = 0; p < (exact ? 2 : 1); ++p) out.part[p][2 * h + i] = pair.part[p];
    }
  }
  return out;
}

// Takes the warp's columns of its eight samples through maps and mixing. For each row tile
//   look(s, left)   sees the heads' products before they are mixed, s = 8 (node 8) first,
//   finish(s, c)    takes the result, s = 8 last.
template <bool exact, bool transposed, int unrolled, class Look, class Finish>
__device__ inline void multiply_and_mix(const Tile<exact>& tile, const MapOperands<exact>& weights,
                                        const Attention<exact>& attention, const Thread& self,
                                        const Look& look, const Finish& finish) {
  constexpr int planes = exact ? 2 : 1;
  Mixing<exact> mixing[heads];
#pragma unroll
  for (int h = 0; h < heads; ++h) mixing[h] = attention.mixing(transposed, h, self);
  const uint32_t* words = tile.words[0] + 8 * self.half * row_tile_words;
  const uint32_t* ninth_words = tile.words[0] + (16 + self.half) * row_tile_words;

  float ninth[maps][4];
  multiply_row_tile(ninth, ninth_words, weights, self);
  const Left<exact> ninth_left = heads_as_left<exact>(ninth);
  look(8, ninth_left);
  Right<exact> b;
#pragma unroll
  for (int p = 0; p < planes; ++p) {
#pragma unroll
    for (int h = 0; h < heads; ++h) b.part[p][h] = mixing[h].own_sample(p, self);
  }
  multiply<exact>(ninth[0], ninth_left, b);
#pragma unroll unrolled
  for (int s = 0; s < 8; ++s) {
    float c[maps][4];
    multiply_row_tile(c, words + s * row_tile_words, weights, self);
    const Left<exact> left = heads_as_left<exact>(c);
    look(s, left);
    Right<exact> inner, from, to;
#pragma unroll
    for (int p = 0; p < planes; ++p) {
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        inner.part[p][h] = mixing[h].inner[p];
        from.part[p][h] = mixing[h].from_sample(p, s, self);
        to.part[p][h] = mixing[h].to_sample(p, s, self);
      }
    }
#pragma unroll
    for (int term = 0; term < terms<exact>; ++term) {
      multiply_term<exact>(ninth[0], left, to, term);
      multiply_term<exact>(c[0], ninth_left, from, term);
    }
    multiply<exact>(c[0], left, inner);
    finish(s, c[0]);
  }
  finish(8, ninth[0]);
}

// Returns the row tile of number s as above.
__device__ inline int row_tile_of(int s, const Thread& self) {
  return s < 8 ? 8 * self.half + s : 16 + self.half;
}

}  // namespace posattn::cuda::positional
