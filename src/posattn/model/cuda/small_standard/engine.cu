#include <algorithm>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/folding/folding.h"
#include "posattn/model/cuda/small_standard/engines.h"
#include "posattn/model/cuda/step/engines.h"
#include "posattn/model/cuda/step/folded_engine.h"
#include "posattn/model/cuda/step/tile.cuh"

namespace posattn::cuda {
namespace standard {

// Estimates the time of the kernels in tiles, one after the other on each multiprocessor.
BlockTiles choose_block_tiles(const FleetShape& shape, int64_t multiprocessors) {
  constexpr double start = 0.2;      // of a block, until its first tile is there
  constexpr double part = 1 / 500.;  // to write and read a block's sums, for the whole device
  const int64_t tiles = shape.sample_stride() / tile_samples;
  const auto better = [&](double of_block) {
    const auto time = [&](int block_tiles) {
      const int64_t blocks = shape.slots * ceil_div(tiles, block_tiles);
      return ceil_div(blocks, multiprocessors) * (block_tiles + start) + blocks * of_block;
    };
    return time(1) < time(tiles_per_group) ? 1 : tiles_per_group;
  };
  return {better(0), better(part)};
}

std::unique_ptr<StepEngine> make_engine_with(const FleetShape& shape,
                                             const BlockTiles& block_tiles) {
  const int nodes = shape.spec.nodes();
  if (nodes <= 3) return make_engine<3>(shape, block_tiles);
  if (nodes <= 5) return make_engine<5>(shape, block_tiles);
  if (shape.precision == Precision::tf32) return make_tf32_engine(shape, block_tiles);
  return make_engine<9>(shape, block_tiles);
}

}  // namespace standard

namespace {

bool supports(const ModelSpec& spec, Precision /*precision*/) {
  return spec.attention == AttentionSource::data && spec.heads == 2 && spec.nodes() <= 9 &&
         Folding::supports(spec);
}

int64_t shared_bytes(const ModelSpec& spec) {
  const int nodes = spec.nodes();
  const int64_t kernels = nodes <= 3   ? standard::engine_shared_bytes<3>()
                          : nodes <= 5 ? standard::engine_shared_bytes<5>()
                                       : std::max(standard::engine_shared_bytes<9>(),
                                                  standard::tf32_engine_shared_bytes());
  return std::max(kernels, Folding::shared_bytes(spec));
}

int64_t bytes(const FleetShape& shape) {
  const int nodes = shape.spec.nodes();
  const standard::BlockTiles block_tiles = standard::choose_block_tiles(shape, multiprocessors());
  if (nodes <= 3) return standard::engine_bytes<3>(shape, block_tiles);
  if (nodes <= 5) return standard::engine_bytes<5>(shape, block_tiles);
  if (shape.precision == Precision::tf32) return standard::tf32_engine_bytes(shape, block_tiles);
  return standard::engine_bytes<9>(shape, block_tiles);
}

std::unique_ptr<StepEngine> make(const FleetShape& shape) {
  return standard::make_engine_with(shape, standard::choose_block_tiles(shape, multiprocessors()));
}

}  // namespace

const EngineRow fused_standard = {"fused-standard", supports, shared_bytes, bytes, make};

}  // namespace posattn::cuda
