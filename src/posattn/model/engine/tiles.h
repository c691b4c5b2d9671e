// A batch as tiles of a few samples, and sums over them that have the same bits for any number of
// threads: tiles are summed in groups, each in order, and groups are added in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "posattn/base/parallel.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {

struct Tile {
  int64_t first;  // its first sample
  int samples;
};

struct Tiles {
  int64_t samples;  // of the batch
  int64_t size;     // samples of a tile, the last one may have fewer

  int64_t count() const { return (samples + size - 1) / size; }
  Tile at(int64_t t) const {
    return {t * size, static_cast<int>(std::min(size, samples - t * size))};
  }
};

// Sums what loss += add_tile(tile, sums) adds to `sums` [size], of all tiles, into the first `size`
// of group_sums. `groups` may depend on the model and the batch, never on the threads.
template <class AddTile>
double sum_tiles(const Tiles& tiles, int groups, int threads, int64_t size,
                 Buffer<float>& group_sums, const AddTile& add_tile) {
  group_sums.resize(groups * size);
  std::vector<double> losses(groups, 0.0);
  parallel_for(groups, threads, [&](int64_t g) {
    float* sums = &group_sums[g * size];
    std::fill_n(sums, size, 0.0f);
    for (int64_t t = tiles.count() * g / groups; t < tiles.count() * (g + 1) / groups; ++t) {
      Watch::look();
      losses[g] += add_tile(tiles.at(t), sums);
    }
  });
  constexpr int64_t piece = 1 << 14;
  parallel_for((size + piece - 1) / piece, threads, [&](int64_t p) {
    float* first = &group_sums[p * piece];
    tile_kernels().sum_parts(std::min(piece, size - p * piece), groups, size, first, first);
  });
  double loss = 0;
  for (const double part : losses) loss += part;
  return loss;
}

}  // namespace posattn::engine
