#include <algorithm>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/large/attention.cuh"

namespace posattn::cuda::large {

namespace {

// Of a tile of narrow layers.
int narrow_samples(int nodes) { return Tile<1>::most_rows / nodes; }

// About 16 samples, at least two tiles: 1000 samples of ten runs then keep all multiprocessors of a
// large GPU at work, and partial gradients are still few.
int group_samples_of(int nodes) {
  const int samples = narrow_samples(nodes);
  return samples * std::max(2, 16 / samples);
}

// How many eights of nodes a warp takes at once, of `tiles`, where there are `others` of them: the
// fewest rounds of all warps, each of a length that grows with the share.
int best_share(int tiles, int others) {
  int best = 1;
  int64_t least = INT64_MAX;
  for (int share = 1; share <= most_shared_tiles; ++share) {
    const int64_t rounds = ceil_div(ceil_div(tiles, share) * others, warps);
    const int64_t cost = rounds * (1 + std::min(share, tiles));
    if (cost <= least) {
      best = share;
      least = cost;
    }
  }
  return best;
}

}  // namespace

TileShape tile_shape(const Layer& layer) {
  const int nodes = layer.nodes;
  TileShape shape;
  const int most_rows = is_narrow(layer) ? Tile<1>::most_rows : Tile<2>::most_rows;
  shape.samples = most_rows / nodes;
  shape.group_samples = group_samples_of(nodes);
  shape.rows = shape.samples * nodes;
  // Products read whole fragments of rows, and whole eights of nodes of the last sample.
  shape.stored_rows = std::max(most_rows, shape.rows - nodes + padded_to_8(nodes));
  shape.node_tiles = padded_to_8(nodes) / 8;
  // 4 modulo 8: reads of [node g][node t] are free of bank conflicts.
  shape.attention_stride = 8 * shape.node_tiles + 4;
  shape.attention_floats = 8 * shape.node_tiles * shape.attention_stride;
  shape.matrices = layer.from_data ? shape.samples : layer.heads;
  const int sixteens_of_columns = (layer.hidden + 15) / 16, sixteens_of_nodes = (nodes + 15) / 16;
  shape.mixed_tiles = best_share(shape.node_tiles, shape.samples * sixteens_of_columns);
  shape.dotted_tiles =
      best_share(shape.node_tiles, (layer.from_data ? shape.samples : 1) * sixteens_of_nodes);
  return shape;
}

bool supports(int nodes, int heads, int columns, int hidden) {
  return nodes >= 1 && nodes <= 65 && heads >= 1 && heads <= 4 && columns >= 1 && columns <= 136 &&
         hidden >= 1 && hidden <= 128;
}

int groups(const Layer& layer) {
  return static_cast<int>(ceil_div(layer.samples, group_samples_of(layer.nodes)));
}

}  // namespace posattn::cuda::large
