// A layer l >= 1, forward, for tf32:
//   z_h = r G_h + g_h,  A_h = softmax(z_h r^T) per sample,  u = r M_0^T + sum_h A_h (r M_h^T) + c,
// then the next r = relu(u). The last layer goes on to the output y = w . r + b, the loss and
// du = dy w where r > 0, which it writes instead of r.
#pragma once

#include "posattn/model/cuda/small_positional/last.cuh"
#include "posattn/model/cuda/small_standard/tf32_scores.cuh"

namespace posattn::cuda::standard_tf32 {

// The last layer's sums of columns: dw, dc.
struct OutputScratch {
  Decoder decoder;
  Parts<Vectors<true, false>::count> parts;
};

template <bool last>
struct alignas(16) DataForwardShared {
  Tile<false> rows;
  Only<last, Tile<false>> errors;
  Weights<false> weights;
  Weights<false, heads> score_weights;
  SampleAttention attention;
  ScoreParts parts;
  Only<last, OutputScratch> output;
};

template <bool last>
__global__ void __launch_bounds__(threads, last ? 1 : 2) data_forward_layer(DataLayer layer) {
  auto& shared = *reinterpret_cast<DataForwardShared<last>*>(dynamic_shared());
  const Thread self;
  const OwnPlaces own(self);
  typename Weights<false>::Bounds bounds = {};
  Weights<false, heads>::Bounds score_bounds = {};
  uint32_t attended = 0;
  float2 constant = make_float2(0, 0);
  float vectors = 0, bias_gradient = 0;
  int slot = -1;
  for (TileWalk walk(layer); !walk.done();) {
    const float* folded = layer.folded + walk.slot * layer.folded_size;
    __syncthreads();  // all are done with the tile before
    shared.rows.start_copy(reinterpret_cast<const Tile<false>*>(layer.rows) +
                           walk.tile_index(layer));
    commit_copies();
    if (walk.slot != slot) {
      slot = walk.slot;
      bounds =
          shared.weights.template load<false>(folded + layer.maps, folded + layer.constant, self);
      score_bounds = shared.score_weights.template load<true, heads>(
          folded + layer.scores, folded + layer.score_bias, self);
      constant = *reinterpret_cast<const float2*>(folded + layer.constant + self.column());
      attended = attended_nodes(layer, layer.steps[slot]);
      if constexpr (last) shared.output.decoder.load(layer, slot);
    }
    wait_copies<0>();
    __syncthreads();
    const Range range = shared.rows.range();
    const ScoreNarrowing narrow(range, score_bounds, folded + layer.score_bias, self);
    multiply_scores(shared.rows, shared.score_weights.of(self), shared.parts, self, narrow);
    __syncthreads();
    const float score_down =
        power_of_two(clamped(-narrow.narrowing.exponent - range.exponent, 120));
#pragma unroll 1
    for (int k = 0; k < 2 * heads; ++k) {
      const int sample = 2 * self.warp + (k >> 1), h = k & 1;
      SampleMatrix matrix = SampleMatrix::sum(shared.parts, sample, h, self);
      matrix.softmax(score_down, attended, self);
      matrix.store(shared.attention, sample, h, 1, self);
    }
    __syncthreads();
    shared.attention.write_to(reinterpret_cast<SampleAttention*>(layer.attention_tiles) +
                              walk.tile_index(layer));

    const int before = range.exponent + bounds.exponent;
    const auto keep = [](const float(&)[maps][4]) {};
    const auto ignore = [](int, const Left<false>&) {};
    if constexpr (!last) {
      const Narrowing narrowing(before, bounds.row * range.largest +
                                            bounds.constant * power_of_two(clamped(before, 120)));
      const float up = power_of_two(narrowing.exponent);
      const float c[2] = {constant.x * up, constant.y * up};
      auto* out = reinterpret_cast<Tile<false>*>(layer.next_rows) + walk.tile_index(layer);
      float most = 0;
      multiply_samples<false, maps, 2>(
          shared.rows, shared.weights.of(self), shared.attention, self, keep, ignore,
          [&](int s, const float(&products)[4]) {
            float u[4];
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              u[e] = relu(products[e] * narrowing.factor + c[e >> 1]);
              most = fmaxf(most, u[e]);
            }
            store_own<false>(out->words[0] + row_tile_of(s, self) * row_tile_words, own, u);
          });
      out->set_range(narrowing.exponent, most, self);
    } else {
      OutputScratch& output = shared.output;
      const auto target = output.decoder.target(layer, walk);
      float r[9][4];
      const float down = power_of_two(clamped(-before, 120));
      multiply_samples<false, maps, 8>(
          shared.rows, shared.weights.of(self), shared.attention, self, keep, ignore,
          [&](int s, const float(&products)[4]) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
              r[s][e] = relu(products[e] * down + (e < 2 ? constant.x : constant.y));
            }
          });
      const Range error_range = finish_forward(r, target, output.decoder, shared.errors,
                                               output.parts, Vectors<true, false>::decoder, self);
      shared.errors.set_range(error_range.exponent, error_range.largest, self);
      __syncthreads();
      auto* out = reinterpret_cast<uint4*>(reinterpret_cast<Tile<false>*>(layer.next_rows) +
                                           walk.tile_index(layer));
      for (int k = threadIdx.x; k < static_cast<int>(sizeof(Tile<false>) / 16); k += threads) {
        out[k] = reinterpret_cast<const uint4*>(&shared.errors)[k];
      }
      const int vector = Parts<3>::vector_of(0);
      vectors += vector > 0 ? output.parts.vector_sum(vector) : 0;
      finish_loss(layer, walk, output.decoder, bias_gradient);
      if (walk.ends_item(layer)) {
        float* gradient = layer.partials + walk.item_index(layer) * layer.folded_size;
        const int64_t place = Vectors<true, false>::place(layer, vector);
        if (vector > 0 && place >= 0) {
          gradient[place + static_cast<int>(threadIdx.x) % columns] = vectors;
        }
        if (threadIdx.x == sums_thread) gradient[layer.decoder_bias] = bias_gradient;
        vectors = bias_gradient = 0;
      }
    }
    walk.advance(layer);
  }
}

}  // namespace posattn::cuda::standard_tf32
