// The host side of the engines whose tiles are halves (tile.cuh): fused-positional, and
// fused-standard in tf32 with more than five nodes. For .cu files.
#pragma once

#include <utility>

#include "posattn/model/cuda/small_positional/layer.h"
#include "posattn/model/cuda/step/folded_engine.h"

namespace posattn::cuda::positional {

// How a step's samples and activations are cut.
struct TileSizes {
  // Layers first_layer .. first_layer + layers - 1 read stored activations.
  TileSizes(const FleetShape& shape, int64_t tile_bytes, int block_tiles, int first_stored_layer,
            int stored_layers);

  PartialSums sums() const { return {items, tiles_per_group / tiles_per_item, tiles}; }
  int64_t row_bytes() const { return layers * layer_bytes; }
  // Device memory of what TileEngine holds.
  int64_t bytes(const FleetShape& shape) const;

  int64_t tiles;        // of a slot
  int tiles_per_item;   // of the kernels with gradients
  int64_t items;        // of a slot
  int64_t layer_bytes;  // activations of one layer, all slots
  int first_layer, layers;
};

// Two samples of the model share one of a tile where this is true.
inline bool is_paired(const ModelSpec& spec) {
  return spec.attention == AttentionSource::positions && spec.nodes() <= most_paired_nodes;
}

class TileEngine : public FoldedEngine {
 protected:
  TileEngine(const FleetShape& shape, const TileSizes& sizes)
      : FoldedEngine(shape, FoldedLayout(shape.spec), sizes.sums()),
        tiles_(sizes),
        processors_(multiprocessors()),
        folding_(shape, positions_.data()),
        rows_(sizes.row_bytes()) {}

  void fold(const FoldingStep& step) override { folding_.enqueue_fold(step); }
  void unfold(const FoldingStep& step) override { folding_.enqueue_unfold(step); }

  // Activations that layer l reads, or null where they are not stored. The backward pass of layer l
  // leaves the errors of layer l - 1 there.
  char* rows(int l) {
    const int index = l - tiles_.first_layer;
    return index < 0 || index >= tiles_.layers ? nullptr
                                               : rows_.data() + index * tiles_.layer_bytes;
  }
  // Fills what all such layers have; l > 0.
  void set_layer(FusedLayer& layer, const StepData& data, int l);

  // Every kernel takes its items in the opposite order of the kernel before.
  template <class L>
  void enqueue_layer(const LayerKernel<L>& kernel, L layer, int tiles_per_item, int threads,
                     cudaStream_t stream) {
    layer.tiles_per_item = tiles_per_item;
    layer.items = static_cast<int>(ceil_div(tiles_.tiles, tiles_per_item));
    const int64_t items = int64_t{1} * layer.slots * layer.items;
    layer.items_per_block =
        static_cast<int>(ceil_div(items, processors_ * kernel.blocks_per_processor));
    layer.descending = std::exchange(descending_, !descending_);
    launch(kernel.kernel, dim3(ceil_div(items, layer.items_per_block)), dim3(threads),
           kernel.shared_bytes, stream, layer);
  }

  const TileSizes tiles_;
  const int64_t processors_;
  bool descending_ = false;  // the order of the next kernel
  Folding folding_;
  DeviceBuffer<char> rows_;
};

// The engine fused-positional with blocks that take the gradients of single tiles, or of groups of
// them. The bits are the same; fused_positional.make takes what is faster.
std::unique_ptr<StepEngine> make_engine_of(const FleetShape& shape, bool single_tiles);

}  // namespace posattn::cuda::positional
