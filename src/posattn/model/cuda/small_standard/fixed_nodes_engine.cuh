// The engine for N nodes: its buffers and the order of its kernels, which are in the other .cuh
// files of this folder; one .cu file per N compiles them.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/folding/folding.h"
#include "posattn/model/cuda/folding/layout.h"
#include "posattn/model/cuda/small_standard/backward.cuh"
#include "posattn/model/cuda/small_standard/blocks.h"
#include "posattn/model/cuda/small_standard/first_backward.cuh"
#include "posattn/model/cuda/small_standard/forward.cuh"
#include "posattn/model/cuda/small_standard/nodes.h"
#include "posattn/model/cuda/small_standard/tables.cuh"
#include "posattn/model/cuda/step/position_tables.h"
#include "posattn/model/parameters.h"

namespace posattn::cuda::standard {

// Numbers of floats that the engine keeps.
template <int N>
struct Sizes {
  Sizes(const FleetShape& shape, const BlockTiles& block_tiles)
      : slots(shape.slots),
        depth(shape.spec.depth),
        tiles(shape.sample_stride() / tile_samples),
        parts(ceil_div(tiles, block_tiles.with_sums)),
        folded(FoldedLayout(shape.spec).size()) {}
  int64_t slots, depth, tiles;
  int64_t parts;  // of a slot's sums, one for each block
  int64_t folded;

  int64_t tile_layer() const { return slots * tiles * tile_floats<N>; }
  int64_t coefficient_layer() const { return slots * tiles * coefficient_floats<N>; }
  int64_t rows() const { return (depth - 1) * tile_layer(); }
  int64_t gradients() const { return 2 * tile_layer(); }
  int64_t attention() const { return depth * coefficient_layer(); }
  int64_t packed_maps() const { return slots * (depth - 1) * maps * map_floats; }
  int64_t packed_scores() const { return slots * (depth - 1) * heads * map_floats; }
  int64_t weights() const { return slots * folded; }
  int64_t partials() const { return slots * parts * folded; }
  int64_t tables() const { return slots * Tables<N>::size; }
  int64_t table_gradients() const { return slots * parts * TableGradients<N>::size; }
  int64_t losses() const { return slots * parts; }

  int64_t bytes() const {
    return sizeof(float) *
               (rows() + gradients() + attention() + 2 * packed_maps() + 2 * packed_scores() +
                2 * weights() + partials() + tables() + table_gradients()) +
           sizeof(double) * losses();
  }
};

template <bool exact, int N>
class Engine : public StepEngine {
 public:
  Engine(const FleetShape& shape, const BlockTiles& block_tiles)
      : spec_(shape.spec),
        sample_stride_(shape.sample_stride()),
        block_tiles_(block_tiles),
        sizes_(shape, block_tiles),
        layout_(spec_),
        folding_(shape),
        positions_(positions_table(spec_)),
        rows_(sizes_.rows()),
        gradients_(sizes_.gradients()),
        attention_(sizes_.attention()),
        packed_forward_(sizes_.packed_maps()),
        packed_backward_(sizes_.packed_maps()),
        packed_score_forward_(sizes_.packed_scores()),
        packed_score_backward_(sizes_.packed_scores()),
        weights_(sizes_.weights()),
        weight_gradients_(sizes_.weights()),
        partials_(sizes_.partials()),
        tables_(sizes_.tables()),
        table_gradients_(sizes_.table_gradients()),
        losses_(sizes_.losses()) {
    allow_shared_bytes(forward_layer<exact, N, false>, forward_shared_bytes<N, false>);
    allow_shared_bytes(forward_layer<exact, N, true>, forward_shared_bytes<N, true>);
    allow_shared_bytes(backward_layer<exact, N>, sizeof(BackwardShared<N>));
    allow_shared_bytes(backward_first<exact, N>, sizeof(FirstBackwardShared<N, false>));
  }

  void enqueue(const StepData& data, const float* parameters, float* gradients, double* losses,
               cudaStream_t stream) override;
  const char* name() const override { return "fused-standard"; }

 private:
  Step step(const StepData& data, const float* parameters, int block_tiles);
  Layer layer(int index);

  ModelSpec spec_;
  int64_t sample_stride_;
  BlockTiles block_tiles_;
  Sizes<N> sizes_;
  FoldedLayout layout_;
  Folding folding_;
  DeviceBuffer<float> positions_;  // P, where it is a formula
  DeviceBuffer<float> rows_;       // [depth - 1, slots, tiles, tile], layers 1 ..
  DeviceBuffer<float> gradients_;  // [2, slots, tiles, tile]: du, by turns
  DeviceBuffer<float> attention_;  // [depth, slots, tiles, coefficients]: A
  DeviceBuffer<float> packed_forward_, packed_backward_;
  DeviceBuffer<float> packed_score_forward_, packed_score_backward_;
  DeviceBuffer<float> weights_, weight_gradients_;  // folded
  DeviceBuffer<float> partials_, tables_, table_gradients_;
  DeviceBuffer<double> losses_;
};

template <bool exact, int N>
Step Engine<exact, N>::step(const StepData& data, const float* parameters, int block_tiles) {
  Step step = {};
  step.slots = data.slots;
  step.inputs = data.inputs;
  step.targets = data.targets;
  step.counted = data.counted;
  if (spec_.stores_positions()) {
    const ParameterLayout parameter_layout(spec_);
    step.positions = parameters + parameter_layout.at("positions.weight").offset;
    step.positions_stride = parameter_layout.buffer_size();
  } else {
    step.positions = positions_.data();
  }
  step.folded = weights_.data();
  step.partials = partials_.data();
  step.losses = losses_.data();
  step.folded_size = sizes_.folded;
  step.decoder = layout_.decoder();
  step.decoder_bias = layout_.decoder_bias();
  step.sample_stride = sample_stride_;
  step.nodes = spec_.nodes();
  step.real_nodes = spec_.real_nodes;
  step.encoding_size = spec_.input_size() - 1;  // of P in the input
  step.tiles = static_cast<int>(sizes_.tiles);
  step.block_tiles = block_tiles;
  step.blocks = static_cast<int>(ceil_div(sizes_.tiles, block_tiles));
  return step;
}

template <bool exact, int N>
Layer Engine<exact, N>::layer(int index) {
  Layer layer = {};
  layer.maps = layout_.maps(index);
  layer.constant = layout_.constant(index);
  layer.scores = layout_.scores(index);
  layer.score_bias = layout_.score_bias(index);
  const int64_t tile_layer = sizes_.tile_layer(), coefficients = sizes_.coefficient_layer();
  layer.attention = attention_.data() + index * coefficients;
  layer.gradient = gradients_.data() + index % 2 * tile_layer;
  if (index + 1 < spec_.depth) layer.output = rows_.data() + index * tile_layer;
  if (index == 0) return layer;
  const int64_t map_offset = int64_t{1} * (index - 1) * maps * map_floats;
  const int64_t score_offset = int64_t{1} * (index - 1) * heads * map_floats;
  layer.forward = packed_forward_.data() + map_offset;
  layer.backward = packed_backward_.data() + map_offset;
  layer.score_forward = packed_score_forward_.data() + score_offset;
  layer.score_backward = packed_score_backward_.data() + score_offset;
  layer.maps_stride = int64_t{1} * (spec_.depth - 1) * maps * map_floats;
  layer.scores_stride = int64_t{1} * (spec_.depth - 1) * heads * map_floats;
  layer.rows = rows_.data() + (index - 1) * tile_layer;
  layer.input_gradient = gradients_.data() + (index - 1) % 2 * tile_layer;
  return layer;
}

template <bool exact, int N>
void Engine<exact, N>::enqueue(const StepData& data, const float* parameters, float* gradients,
                               double* losses, cudaStream_t stream) {
  const FoldedWeights folded = {weights_.data(), packed_forward_.data(), packed_backward_.data(),
                                packed_score_forward_.data(), packed_score_backward_.data()};
  const Step forward = step(data, parameters, block_tiles_.without_sums);
  const Step summing = step(data, parameters, block_tiles_.with_sums);
  const auto slots = static_cast<unsigned>(sizes_.slots);
  const dim3 forward_grid(static_cast<unsigned>(forward.blocks), slots);
  const dim3 grid(static_cast<unsigned>(summing.blocks), slots), block(tile_threads);
  const int last = spec_.depth - 1;

  folding_.enqueue_fold(data.slots, parameters, folded, stream);
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
  enqueue_sum_groups(data.slots, static_cast<int>(sizes_.slots), partials_.data(),
                     weight_gradients_.data(), summing.blocks,
                     tiles_per_group / summing.block_tiles, sizes_.folded, stream);
  launch(finish_first<N>, dim3(finish_tasks, slots), block, 0, stream, summing, layer(0),
         table_gradients_.data(), weight_gradients_.data(), losses);
  folding_.enqueue_unfold(data.slots, parameters, folded, weight_gradients_.data(), gradients,
                          stream);
}

template <int N>
std::unique_ptr<StepEngine> make_engine(const FleetShape& shape, const BlockTiles& block_tiles) {
  if constexpr (N <= 5) {  // for more nodes tf32 has an engine of its own (half_engine.h)
    if (shape.precision == Precision::tf32) {
      return std::make_unique<Engine<false, N>>(shape, block_tiles);
    }
  }
  return std::make_unique<Engine<true, N>>(shape, block_tiles);
}

template <int N>
int64_t engine_bytes(const FleetShape& shape, const BlockTiles& block_tiles) {
  return Folding::bytes(shape) + Sizes<N>(shape, block_tiles).bytes();
}

template <int N>
int64_t engine_shared_bytes() {
  return std::max({sizeof(FirstForwardShared<N>), forward_shared_bytes<N, false>,
                   forward_shared_bytes<N, true>, sizeof(BackwardShared<N>),
                   sizeof(FirstBackwardShared<N, false>)});
}

}  // namespace posattn::cuda::standard
