#include "posattn/model/cuda/small_positional/tile_engine.h"

namespace posattn::cuda::positional {

TileSizes::TileSizes(const FleetShape& shape, int64_t tile_bytes, int block_tiles,
                     int first_stored_layer, int stored_layers)
    : tiles(ceil_div(shape.sample_stride(), tile_samples * (is_paired(shape.spec) ? 2 : 1))),
      tiles_per_item(block_tiles),
      items(ceil_div(tiles, block_tiles)),
      layer_bytes(shape.slots * tiles * tile_bytes),
      first_layer(first_stored_layer),
      layers(stored_layers) {}

int64_t TileSizes::bytes(const FleetShape& shape) const {
  return FoldedEngine::buffer_bytes(shape, FoldedLayout(shape.spec), sums()) + row_bytes() +
         Folding::bytes(shape);
}

void TileEngine::set_layer(FusedLayer& layer, const StepData& data, int l) {
  layer.steps = data.slots;
  layer.inputs = data.inputs;
  layer.targets = data.targets;
  layer.counted = data.counted;
  layer.folded = folded_.data();
  layer.folded_size = layout_.size();
  static_cast<LayerPlaces&>(layer) = layout_.places(l);
  layer.previous_constant = layout_.constant(l - 1);
  layer.first_attention = layout_.attention(0);
  layer.decoder = layout_.decoder();
  layer.decoder_bias = layout_.decoder_bias();
  layer.rows = layer.previous_errors = rows(l);
  layer.errors = layer.next_rows = rows(l + 1);
  layer.partials = partials_.data();
  layer.losses = losses_.data();
  layer.slots = shape_.slots;
  layer.nodes = shape_.spec.nodes();
  layer.sample_stride = static_cast<int>(shape_.sample_stride());
  layer.paired = is_paired(shape_.spec);
  layer.tiles = static_cast<int>(tiles_.tiles);
}

}  // namespace posattn::cuda::positional
