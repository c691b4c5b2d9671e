#include <algorithm>

#include "posattn/model/cuda/small_positional/tile_engine.h"
#include "posattn/model/cuda/small_standard/engines.h"
#include "posattn/model/cuda/small_standard/first_backward.cuh"
#include "posattn/model/cuda/small_standard/tables.cuh"
#include "posattn/model/cuda/small_standard/tf32_layer.h"

namespace posattn::cuda::standard {
namespace {

using positional::LayerKernel;
using positional::TileEngine;
using positional::TileSizes;
using standard_tf32::data_kernels;
using standard_tf32::DataKernels;
using standard_tf32::DataLayer;

constexpr int nodes = positional::kernel_nodes;

TileSizes tile_sizes(const FleetShape& shape, const BlockTiles& block_tiles) {
  return TileSizes(shape, data_kernels().tile_bytes, block_tiles.with_sums, 1, shape.spec.depth);
}

// What the engine keeps in addition to TileEngine's buffers, of all slots.
struct Sizes {
  Sizes(const FleetShape& shape, const TileSizes& tiles) {
    const int64_t all_tiles = shape.slots * tiles.tiles;
    layer_attention = all_tiles * data_kernels().attention_bytes;
    attention = (shape.spec.depth - 1) * layer_attention;
    first_attention = all_tiles * coefficient_floats<nodes>;
    tables = int64_t{shape.slots} * Tables<nodes>::size;
    table_gradients = shape.slots * tiles.items * TableGradients<nodes>::size;
  }
  int64_t bytes() const {
    return attention +
           static_cast<int64_t>(sizeof(float)) * (first_attention + tables + table_gradients);
  }
  int64_t layer_attention, attention;  // bytes
  int64_t first_attention, tables, table_gradients;
};

class Tf32Engine final : public TileEngine {
 public:
  Tf32Engine(const FleetShape& shape, const BlockTiles& block_tiles)
      : TileEngine(shape, tile_sizes(shape, block_tiles)),
        block_tiles_(block_tiles),
        sizes_(shape, tiles_),
        kernels_(data_kernels()),
        attention_(sizes_.attention),
        first_attention_(sizes_.first_attention),
        tables_(sizes_.tables),
        table_gradients_(sizes_.table_gradients) {
    for (const LayerKernel<DataLayer>& kernel :
         {kernels_.forward, kernels_.last, kernels_.backward}) {
      allow_shared_bytes(kernel.kernel, kernel.shared_bytes);
    }
    allow_shared_bytes(backward_first<false, nodes, true>,
                       sizeof(FirstBackwardShared<nodes, true>));
  }
  const char* name() const override { return "fused-standard"; }

 private:
  void enqueue_layers(const StepData& data, const float* parameters, cudaStream_t stream) override {
    const Step forward = step(data, parameters, block_tiles_.without_sums);
    const Step summing = step(data, parameters, block_tiles_.with_sums);
    const auto slots = static_cast<unsigned>(shape_.slots);
    const dim3 block(tile_threads);
    const int last = shape_.spec.depth - 1;
    launch(make_tables<nodes>, dim3(table_blocks, slots), block, 0, stream, forward, first_layer(),
           tables_.data());
    launch(forward_first_tf32<nodes>, dim3(static_cast<unsigned>(forward.blocks), slots), block,
           sizeof(FirstForwardShared<nodes>), stream, forward, first_layer(), tables_.data(),
           reinterpret_cast<positional::Tile<false>*>(rows(1)));
    descending_ = false;
    for (int l = 1; l < last; ++l) enqueue_kernel(kernels_.forward, data, l, 1, stream);
    enqueue_kernel(kernels_.last, data, last, block_tiles_.with_sums, stream);
    for (int l = last; l > 0; --l) {
      enqueue_kernel(kernels_.backward, data, l, block_tiles_.with_sums, stream);
    }
    launch(backward_first<false, nodes, true>, dim3(static_cast<unsigned>(summing.blocks), slots),
           block, sizeof(FirstBackwardShared<nodes, true>), stream, summing, first_layer(),
           tables_.data(), table_gradients_.data());
  }
  void finish_sums(const StepData& data, const float* parameters, double* losses,
                   cudaStream_t stream) override {
    launch(finish_first<nodes>, dim3(finish_tasks, shape_.slots), dim3(tile_threads), 0, stream,
           step(data, parameters, block_tiles_.with_sums), first_layer(), table_gradients_.data(),
           folded_gradients_.data(), losses);
  }

  Step step(const StepData& data, const float* parameters, int block_tiles) const {
    return make_step(shape_, layout_, data, positions(parameters), folded_.data(), block_tiles);
  }
  Layer first_layer() {
    Layer layer = layer_places(layout_, 0);
    layer.attention = first_attention_.data();
    layer.gradient = reinterpret_cast<float*>(rows(1));  // halves
    return layer;
  }
  void enqueue_kernel(const LayerKernel<DataLayer>& kernel, const StepData& data, int l,
                      int tiles_per_item, cudaStream_t stream) {
    DataLayer layer = {};
    set_layer(layer, data, l);
    if (l == 1) layer.previous_constant = -1;  // layer 0 has its tables
    layer.attention_tiles = attention_.data() + (l - 1) * sizes_.layer_attention;
    layer.real_nodes = shape_.spec.real_nodes;
    enqueue_layer(kernel, layer, tiles_per_item, kernels_.threads, stream);
  }

  const BlockTiles block_tiles_;
  const Sizes sizes_;
  const DataKernels kernels_;
  DeviceBuffer<char> attention_;  // [depth - 1, slots, tiles]: of the layers behind the first
  DeviceBuffer<float> first_attention_;  // of the first
  DeviceBuffer<float> tables_, table_gradients_;
};

}  // namespace

std::unique_ptr<StepEngine> make_tf32_engine(const FleetShape& shape,
                                             const BlockTiles& block_tiles) {
  return std::make_unique<Tf32Engine>(shape, block_tiles);
}

int64_t tf32_engine_shared_bytes() {
  const DataKernels kernels = data_kernels();
  return std::max({kernels.forward.shared_bytes, kernels.last.shared_bytes,
                   kernels.backward.shared_bytes,
                   int64_t{sizeof(FirstBackwardShared<nodes, true>)}});
}

int64_t tf32_engine_bytes(const FleetShape& shape, const BlockTiles& block_tiles) {
  const TileSizes tiles = tile_sizes(shape, block_tiles);
  return tiles.bytes(shape) + Sizes(shape, tiles).bytes();
}

}  // namespace posattn::cuda::standard
