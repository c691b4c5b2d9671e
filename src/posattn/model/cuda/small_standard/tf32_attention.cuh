// Mixing of a tile of halves (small_positional/tile.cuh) with matrices of each sample's own, for
// tf32.
#pragma once

#include "posattn/model/cuda/small_positional/mixing.cuh"
#include "posattn/model/cuda/small_standard/tf32_layer.h"

namespace posattn::cuda::standard_tf32 {

using namespace positional;

// Bit j: node j is attended, that is, takes part in attention.
__device__ inline uint32_t attended_nodes(const DataLayer& layer, const SlotStep& step) {
  const uint32_t present = (1u << layer.nodes) - 1;
  const uint32_t absent = ((1u << layer.real_nodes) - 1) & ~((1u << step.real_nodes) - 1);
  return present & ~absent;
}

// Keeps A(i, j) of every sample and head as operands.
struct alignas(16) SampleAttention {
  uint32_t inner[tile_samples][heads][32];  // by lanes: A(g, 2t), A(g, 2t + 1)
  uint16_t row[tile_samples][heads][8];     // A(8, j)
  uint16_t column[tile_samples][heads][8];  // A(i, 8)
  uint16_t own[tile_samples][heads];        // A(8, 8)

  template <bool transposed>
  __device__ Mixing<false> mixing(int sample, int h, const Thread& self) const {
    const uint32_t word = inner[sample][h][self.lane];
    const auto& from = transposed ? row[sample][h] : column[sample][h];
    const auto& to = transposed ? column[sample][h] : row[sample][h];
    Mixing<false> out;
    out.inner[0] = transposed ? transpose_matrix(word) : word;
    out.from[0] = from[self.g];
    out.to[0] = reinterpret_cast<const uint32_t*>(to)[self.t];
    out.own[0] = 0;
    return out;
  }
  // Mixes from node 8 of the eight samples of a half to node 8.
  __device__ uint32_t own_samples(int half, int h, const Thread& self) const {
    const uint32_t value = own[8 * half + self.g][h];
    return self.g >> 1 == self.t ? value << 16 * (self.g & 1) : 0;
  }
  __device__ void start_copy(const SampleAttention* from) {
    for (int k = threadIdx.x; k < static_cast<int>(sizeof(SampleAttention) / 16); k += threads) {
      copy_async(reinterpret_cast<char*>(this) + 16 * k,
                 reinterpret_cast<const char*>(from) + 16 * k);
    }
  }
  __device__ void write_to(SampleAttention* to) const {
    for (int k = threadIdx.x; k < static_cast<int>(sizeof(SampleAttention) / 16); k += threads) {
      reinterpret_cast<uint4*>(to)[k] = reinterpret_cast<const uint4*>(this)[k];
    }
  }
};

// Takes the warp's columns of its eight samples through maps and the mixing of the last two of
// them. For each row tile, node 8 (s = 8) first,
//   convert(c)      may change the products before,
//   look(s, left)   sees the heads' products as halves,
//   finish(s, c)    takes the result, s = 8 last: map 0's product, where there is one, and the
//   mixed.
template <bool transposed, int count, int unrolled, class Convert, class Look, class Finish>
__device__ inline void multiply_samples(const Tile<false>& tile,
                                        const MapOperands<false, count>& weights,
                                        const SampleAttention& attention, const Thread& self,
                                        const Convert& convert, const Look& look,
                                        const Finish& finish) {
  const uint32_t* words = tile.words[0] + 8 * self.half * row_tile_words;
  const uint32_t* ninth_words = tile.words[0] + (16 + self.half) * row_tile_words;
  const auto begin = [](float(&to)[4], const float(&c)[count][4]) {
#pragma unroll
    for (int e = 0; e < 4; ++e) to[e] = count > heads ? c[0][e] : 0;
  };
  float ninth[count][4], ninth_result[4];
  multiply_row_tile(ninth, ninth_words, weights, self);
  convert(ninth);
  const Left<false> ninth_left = heads_as_left<false>(ninth);
  look(8, ninth_left);
  begin(ninth_result, ninth);
  Right<false> own;
#pragma unroll
  for (int h = 0; h < heads; ++h) own.part[0][h] = attention.own_samples(self.half, h, self);
  multiply<false>(ninth_result, ninth_left, own);
#pragma unroll unrolled
  for (int s = 0; s < 8; ++s) {
    float c[count][4], result[4];
    multiply_row_tile(c, words + s * row_tile_words, weights, self);
    convert(c);
    const Left<false> left = heads_as_left<false>(c);
    look(s, left);
    begin(result, c);
    Right<false> inner, from, to;
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      const Mixing<false> mixing =
          attention.template mixing<transposed>(8 * self.half + s, h, self);
      inner.part[0][h] = mixing.inner[0];
      from.part[0][h] = mixing.from_sample(0, s, self);
      to.part[0][h] = mixing.to_sample(0, s, self);
    }
    multiply<false>(ninth_result, left, to);
    multiply<false>(result, ninth_left, from);
    multiply<false>(result, left, inner);
    finish(s, result);
  }
  finish(8, ninth_result);
}

}  // namespace posattn::cuda::standard_tf32
