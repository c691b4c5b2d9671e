// A layer l >= 1, backward, for tf32, from du to the du of the layer before:
//   q_m = du M_m,   dr_j = q_0,j + sum_h sum_i A_h,ij q_h,i,   dA_h,ij = q_h,i . r_j,
//   ds = the softmax's gradient,
//   dr_j += sum_h (sum_i ds_h,ij (r_i G_h + g_h) + sum_i ds_h,ji r_i G_h^T),
// and then du' = dr where r > 0; the gradients of the layer's weights on the way.
#pragma once

#include "posattn/model/cuda/small_positional/backward.cuh"
#include "posattn/model/cuda/small_standard/tf32_gradients.cuh"
#include "posattn/model/cuda/small_standard/tf32_scores.cuh"

namespace posattn::cuda::standard_tf32 {

struct alignas(16) DataBackwardShared {
  Tile<false> rows[2], errors[2];
  SampleAttention attention[2];
  SampleAttention scores;  // ds
  Weights<false> weights;
  Weights<false, heads> to_scores, from_scores;  // r -> r G, r -> r G^T
  ScoreParts parts;
  Parts<1> sums;  // dc of the layer before
  uint32_t largest[warps];
};

__global__ void __launch_bounds__(threads, 1) data_backward_layer(DataLayer layer) {
  auto& shared = *reinterpret_cast<DataBackwardShared*>(dynamic_shared());
  const Thread self;
  const OwnPlaces own(self);
  TileWalk walk(layer), ahead = walk;
  const auto prefetch = [&](int stage) {
    if (!ahead.done()) {
      const int64_t tile = ahead.tile_index(layer);
      shared.rows[stage].start_copy(reinterpret_cast<const Tile<false>*>(layer.rows) + tile);
      shared.errors[stage].start_copy(reinterpret_cast<const Tile<false>*>(layer.errors) + tile);
      shared.attention[stage].start_copy(
          reinterpret_cast<const SampleAttention*>(layer.attention_tiles) + tile);
      ahead.advance(layer);
    }
    commit_copies();
  };
  prefetch(0);

  SampleGradients<true> map_gradients;
  SampleGradients<false> score_gradients;
  map_gradients.clear();
  score_gradients.clear();
  float constant_sum = 0;
  Weights<false>::Bounds bounds = {};
  Weights<false, heads>::Bounds to_bounds = {}, from_bounds = {};
  int slot = -1;
  for (int stage = 0; !walk.done(); stage ^= 1) {
    const float* folded = layer.folded + walk.slot * layer.folded_size;
    if (walk.slot != slot) {
      slot = walk.slot;
      bounds = shared.weights.load<true>(folded + layer.maps, folded + layer.constant, self);
      to_bounds = shared.to_scores.load<true, heads>(folded + layer.scores,
                                                     folded + layer.score_bias, self);
      from_bounds = shared.from_scores.load<false, heads>(folded + layer.scores,
                                                          folded + layer.score_bias, self);
    }
    wait_copies<0>();
    __syncthreads();
    prefetch(stage ^ 1);
    const Tile<false>&rows = shared.rows[stage], &errors = shared.errors[stage];
    const SampleAttention& attention = shared.attention[stage];
    const Range range = rows.range(), error_range = errors.range();
    map_gradients.add_tile(rows, errors, attention, 1,
                           power_of_two(-range.exponent - error_range.exponent), 0, self);

    // Makes dr in the units of du M, and dA.
    const int before = error_range.exponent + bounds.exponent;
    float dr[9][4];
    ScoreProducts products;
    multiply_samples<true, maps, 8>(
        errors, shared.weights.of(self), attention, self, [](const float(&)[maps][4]) {},
        [&](int s, const Left<false>& left) {
          products.add(s, left, rows.words[0], shared.parts, self);
        },
        [&](int s, const float(&c)[4]) {
#pragma unroll
          for (int e = 0; e < 4; ++e) dr[s][e] = c[e];
        });
    __syncthreads();
    // ds = number x 2^score_exponent, below 2^15: |ds| is at most twice the largest |dA|, which is
    // a sum of 64 products.
    const float bound = 128 * bounds.row * error_range.largest * range.largest;
    const int products_exponent = before + range.exponent;
    const int narrowed = clamped(14 - exponent_of(bound), 120);
    const int score_exponent = products_exponent + narrowed;
#pragma unroll 1
    for (int k = 0; k < 2 * heads; ++k) {
      const int sample = 2 * self.warp + (k >> 1), h = k & 1;
      SampleMatrix matrix = SampleMatrix::sum(shared.parts, sample, h, self);
      matrix.softmax_gradient(SampleMatrix::load(attention, sample, h, self));
      matrix.store(shared.scores, sample, h, power_of_two(narrowed), self);
    }
    __syncthreads();
    const float down = power_of_two(clamped(-before, 120));
    {
      const ScoreNarrowing narrow(range, to_bounds, folded + layer.score_bias, self);
      const float factor = power_of_two(clamped(-score_exponent - narrow.narrowing.exponent, 120));
      multiply_samples<true, heads, 8>(
          rows, shared.to_scores.of(self), shared.scores, self, narrow,
          [](int, const Left<false>&) {},
          [&](int s, const float(&c)[4]) {
#pragma unroll
            for (int e = 0; e < 4; ++e) dr[s][e] = dr[s][e] * down + c[e] * factor;
          });
    }
    {
      const float factor =
          power_of_two(clamped(-score_exponent - range.exponent - from_bounds.exponent, 120));
      multiply_samples<false, heads, 8>(
          rows, shared.from_scores.of(self), shared.scores, self, [](const float(&)[heads][4]) {},
          [](int, const Left<false>&) {},
          [&](int s, const float(&c)[4]) {
#pragma unroll
            for (int e = 0; e < 4; ++e) dr[s][e] += c[e] * factor;
          });
    }
    float constant[2] = {}, most = 0;
#pragma unroll
    for (int s = 0; s <= 8; ++s) {
      const int row_tile = row_tile_of(s, self) * row_tile_words;
      const uint32_t even = rows.words[0][row_tile + own.even];
      const uint32_t odd = rows.words[0][row_tile + own.odd];
      float(&d)[4] = dr[s];
      d[0] = first_open(even) ? d[0] : 0;
      d[1] = first_open(odd) ? d[1] : 0;
      d[2] = second_open(even) ? d[2] : 0;
      d[3] = second_open(odd) ? d[3] : 0;
      constant[0] += d[0] + d[1];
      constant[1] += d[2] + d[3];
#pragma unroll
      for (int e = 0; e < 4; ++e) most = fmaxf(most, fabsf(d[e]));
    }
    const uint32_t largest = warp_maximum(__float_as_uint(most));
    if (self.lane == 0) shared.largest[self.warp] = largest;
    shared.sums.store(0, constant[0], constant[1], self);
    __syncthreads();
    uint32_t most_bits = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) most_bits = max(most_bits, shared.largest[w]);
    const int exponent = clamped(7 - exponent_of(__uint_as_float(most_bits)), most_exponent);
    const float up = power_of_two(exponent);
    auto* out = reinterpret_cast<Tile<false>*>(layer.previous_errors) + walk.tile_index(layer);
#pragma unroll
    for (int s = 0; s <= 8; ++s) {
      const float(&d)[4] = dr[s];
      store_own<false>(out->words[0] + row_tile_of(s, self) * row_tile_words, own,
                       {d[0] * up, d[1] * up, d[2] * up, d[3] * up});
    }
    out->set_range(exponent, most * up, self);
    if (threadIdx.x < columns) constant_sum += shared.sums.vector_sum(0);
    // Rows mixed by ds are below 2^23; those that were narrowed count 2^-8.
    const float score_down = power_of_two(clamped(-score_exponent - range.exponent, 120));
    score_gradients.add_tile(rows, rows, shared.scores, 1.0f / 256,
                             256 * score_down * power_of_two(-range.exponent), score_down, self);
    if (walk.ends_item(layer)) {
      float* gradient = layer.partials + walk.item_index(layer) * layer.folded_size;
      map_gradients.store(gradient + layer.maps + columns * columns, gradient + layer.maps, self);
      score_gradients.store(gradient + layer.scores, nullptr, self);
      score_gradients.store_vector(gradient + layer.score_bias, self);
      if (layer.previous_constant >= 0 && threadIdx.x < columns) {
        gradient[layer.previous_constant + threadIdx.x] = constant_sum;
      }
      map_gradients.clear();
      score_gradients.clear();
      constant_sum = 0;
    }
    walk.advance(layer);
  }
}

}  // namespace posattn::cuda::standard_tf32
