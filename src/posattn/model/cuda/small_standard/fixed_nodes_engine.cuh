// The engine for N nodes: its buffers and the order of its kernels, which are in the other .cuh
// files of this folder; one .cu file per N compiles them.
#pragma once

#include <algorithm>
#include <memory>

#include "posattn/model/cuda/small_standard/backward.cuh"
#include "posattn/model/cuda/small_standard/engines.h"
#include "posattn/model/cuda/small_standard/first_backward.cuh"
#include "posattn/model/cuda/small_standard/forward.cuh"
#include "posattn/model/cuda/small_standard/tables.cuh"

namespace posattn::cuda::standard {

// Numbers that the engine keeps in addition to FoldedEngine's.
template <int N>
struct Sizes {
  Sizes(const FleetShape& shape, const BlockTiles& block_tiles)
      : slots(shape.slots),
        depth(shape.spec.depth),
        tiles(shape.sample_stride() / tile_samples),
        parts(ceil_div(tiles, block_tiles.with_sums)),
        group(tiles_per_group / block_tiles.with_sums) {}
  int64_t slots, depth, tiles;
  int64_t parts;  // of a slot's sums, one for each block
  int group;

  // The losses are finish_first's.
  PartialSums sums() const { return {parts, group, 0}; }
  int64_t tile_layer() const { return slots * tiles * tile_floats<N>; }
  int64_t coefficient_layer() const { return slots * tiles * coefficient_floats<N>; }
  int64_t rows() const { return (depth - 1) * tile_layer(); }
  int64_t gradients() const { return 2 * tile_layer(); }
  int64_t attention() const { return depth * coefficient_layer(); }
  int64_t packed_maps() const { return slots * (depth - 1) * maps * map_floats; }
  int64_t packed_scores() const { return slots * (depth - 1) * heads * map_floats; }
  int64_t tables() const { return slots * Tables<N>::size; }
  int64_t table_gradients() const { return slots * parts * TableGradients<N>::size; }
  int64_t losses() const { return slots * parts; }

  int64_t bytes() const {
    return sizeof(float) * (rows() + gradients() + attention() + 2 * packed_maps() +
                            2 * packed_scores() + tables() + table_gradients()) +
           sizeof(double) * losses();
  }
};

template <bool exact, int N>
class Engine final : public FoldedEngine {
 public:
  Engine(const FleetShape& shape, const BlockTiles& block_tiles)
      : FoldedEngine(shape, FoldedLayout(shape.spec), Sizes<N>(shape, block_tiles).sums()),
        block_tiles_(block_tiles),
        sizes_(shape, block_tiles),
        folding_(shape, positions_.data()),
        rows_(sizes_.rows()),
        gradients_(sizes_.gradients()),
        attention_(sizes_.attention()),
        packed_forward_(sizes_.packed_maps()),
        packed_backward_(sizes_.packed_maps()),
        packed_score_forward_(sizes_.packed_scores()),
        packed_score_backward_(sizes_.packed_scores()),
        tables_(sizes_.tables()),
        table_gradients_(sizes_.table_gradients()),
        block_losses_(sizes_.losses()) {
    allow_shared_bytes(forward_layer<exact, N, false>, forward_shared_bytes<N, false>);
    allow_shared_bytes(forward_layer<exact, N, true>, forward_shared_bytes<N, true>);
    allow_shared_bytes(backward_layer<exact, N>, sizeof(BackwardShared<N>));
    allow_shared_bytes(backward_first<exact, N>, sizeof(FirstBackwardShared<N, false>));
  }
  const char* name() const override { return "fused-standard"; }

 private:
  void fold(const FoldingStep& step) override {
    folding_.enqueue_fold(step, {packed_forward_.data(), packed_backward_.data(),
                                 packed_score_forward_.data(), packed_score_backward_.data()});
  }
  void unfold(const FoldingStep& step) override { folding_.enqueue_unfold(step); }
  void enqueue_layers(const StepData& data, const float* parameters, cudaStream_t stream) override;
  void finish_sums(const StepData& data, const float* parameters, double* losses,
                   cudaStream_t stream) override {
    launch(finish_first<N>, dim3(finish_tasks, shape_.slots), dim3(tile_threads), 0, stream,
           step(data, parameters, block_tiles_.with_sums), layer(0), table_gradients_.data(),
           folded_gradients_.data(), losses);
  }

  Step step(const StepData& data, const float* parameters, int block_tiles) {
    Step step =
        make_step(shape_, layout_, data, positions(parameters), folded_.data(), block_tiles);
    step.partials = partials_.data();
    step.losses = block_losses_.data();
    return step;
  }
  Layer layer(int index);

  const BlockTiles block_tiles_;
  const Sizes<N> sizes_;
  Folding folding_;
  DeviceBuffer<float> rows_;       // [depth - 1, slots, tiles, tile], layers 1 ..
  DeviceBuffer<float> gradients_;  // [2, slots, tiles, tile]: du, by turns
  DeviceBuffer<float> attention_;  // [depth, slots, tiles, coefficients]: A
  DeviceBuffer<float> packed_forward_, packed_backward_;
  DeviceBuffer<float> packed_score_forward_, packed_score_backward_;
  DeviceBuffer<float> tables_, table_gradients_;
  DeviceBuffer<double> block_losses_;  // [slots, parts]
};

template <bool exact, int N>
Layer Engine<exact, N>::layer(int index) {
  Layer layer = layer_places(layout_, index);
  const int64_t tile_layer = sizes_.tile_layer(), depth = sizes_.depth;
  layer.attention = attention_.data() + index * sizes_.coefficient_layer();
  layer.gradient = gradients_.data() + index % 2 * tile_layer;
  if (index + 1 < depth) layer.output = rows_.data() + index * tile_layer;
  if (index == 0) return layer;
  const int64_t map_offset = int64_t{1} * (index - 1) * maps * map_floats;
  const int64_t score_offset = int64_t{1} * (index - 1) * heads * map_floats;
  layer.forward = packed_forward_.data() + map_offset;
  layer.backward = packed_backward_.data() + map_offset;
  layer.score_forward = packed_score_forward_.data() + score_offset;
  layer.score_backward = packed_score_backward_.data() + score_offset;
  layer.maps_stride = (depth - 1) * maps * map_floats;
  layer.scores_stride = (depth - 1) * heads * map_floats;
  layer.rows = rows_.data() + (index - 1) * tile_layer;
  layer.input_gradient = gradients_.data() + (index - 1) % 2 * tile_layer;
  return layer;
}

template <bool exact, int N>
void Engine<exact, N>::enqueue_layers(const StepData& data, const float* parameters,
                                      cudaStream_t stream) {
  const Step forward = step(data, parameters, block_tiles_.without_sums);
  const Step summing = step(data, parameters, block_tiles_.with_sums);
  const auto slots = static_cast<unsigned>(shape_.slots);
  const dim3 forward_grid(static_cast<unsigned>(forward.blocks), slots);
  const dim3 grid(static_cast<unsigned>(summing.blocks), slots), block(tile_threads);
  const int last = shape_.spec.depth - 1;

  launch(make_tables<N>, dim3(table_blocks, slots), block, 0, stream, forward, layer(0),
         tables_.data());
  launch(forward_first<exact, N>, forward_grid, block, sizeof(FirstForwardShared<N>), stream,
         forward, layer(0), tables_.data());
  for (int l = 1; l < last; ++l) {
    launch(forward_layer<exact, N, false>, forward_grid, block, forward_shared_bytes<N, false>,
           stream, forward, layer(l));
  }
  launch(forward_layer<exact, N, true>, grid, block, forward_shared_bytes<N, true>, stream, summing,
         layer(last));
  for (int l = last; l > 0; --l) {
    launch(backward_layer<exact, N>, grid, block, sizeof(BackwardShared<N>), stream, summing,
           layer(l));
  }
  launch(backward_first<exact, N>, grid, block, sizeof(FirstBackwardShared<N, false>), stream,
         summing, layer(0), tables_.data(), table_gradients_.data());
}

template <int N>
std::unique_ptr<StepEngine> make_engine(const FleetShape& shape, const BlockTiles& block_tiles) {
  if constexpr (N <= 5) {  // for more nodes tf32 has an engine of its own (tf32_engine.cu)
    if (shape.precision == Precision::tf32) {
      return std::make_unique<Engine<false, N>>(shape, block_tiles);
    }
  }
  return std::make_unique<Engine<true, N>>(shape, block_tiles);
}

template <int N>
int64_t engine_bytes(const FleetShape& shape, const BlockTiles& block_tiles) {
  const Sizes<N> sizes(shape, block_tiles);
  return FoldedEngine::buffer_bytes(shape, FoldedLayout(shape.spec), sizes.sums()) +
         Folding::bytes(shape) + sizes.bytes();
}

template <int N>
int64_t engine_shared_bytes() {
  return std::max({sizeof(FirstForwardShared<N>), forward_shared_bytes<N, false>,
                   forward_shared_bytes<N, true>, sizeof(BackwardShared<N>),
                   sizeof(FirstBackwardShared<N, false>)});
}

}  // namespace posattn::cuda::standard
