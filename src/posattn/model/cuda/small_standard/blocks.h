// How many tiles the blocks of the fused standard engine take: all of a group's, which keeps the
// copies of the next tile behind the work and writes one part of each sum for the group; or one
// where the groups of a small fleet would leave multiprocessors idle. A matter of speed alone: the
// results have the same bits.
#pragma once

#include <cstdint>
#include <memory>

#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda::standard {

struct BlockTiles {
  int without_sums = 1;  // kernels that go from tile to tile, forward
  int with_sums = 1;     // kernels that add up gradients or the loss
};

BlockTiles choose_block_tiles(const FleetShape& shape, int64_t multiprocessors);

// The engine with blocks of a given size, 1 or tiles_per_group.
std::unique_ptr<StepEngine> make_engine_with(const FleetShape& shape,
                                             const BlockTiles& block_tiles);

}  // namespace posattn::cuda::standard
