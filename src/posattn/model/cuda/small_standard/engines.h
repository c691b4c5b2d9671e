// The engines of fused-standard: one for at most N nodes, N = 3, 5 or 9 (smaller models leave the
// last nodes absent), and one in tf32 for more than five nodes, whose tiles are halves.
#pragma once

#include <cstdint>
#include <memory>

#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda::standard {

// How many tiles a block takes: all of a group's, which keeps the copies of the next tile behind
// the work and writes one part of each sum for the group; or one where the groups of a small fleet
// would leave multiprocessors idle. This is a matter of speed alone: the results have the same
// bits.
struct BlockTiles {
  int without_sums = 1;  // kernels that go from tile to tile, forward
  int with_sums = 1;     // kernels that add up gradients or the loss
};

BlockTiles choose_block_tiles(const FleetShape& shape, int64_t multiprocessors);

// Makes the engine with blocks of a given size, 1 or tiles_per_group.
std::unique_ptr<StepEngine> make_engine_with(const FleetShape& shape,
                                             const BlockTiles& block_tiles);

template <int N>
std::unique_ptr<StepEngine> make_engine(const FleetShape& shape, const BlockTiles& block_tiles);
template <int N>
int64_t engine_bytes(const FleetShape& shape, const BlockTiles& block_tiles);
template <int N>
int64_t engine_shared_bytes();

std::unique_ptr<StepEngine> make_tf32_engine(const FleetShape& shape,
                                             const BlockTiles& block_tiles);
int64_t tf32_engine_bytes(const FleetShape& shape, const BlockTiles& block_tiles);
int64_t tf32_engine_shared_bytes();

}  // namespace posattn::cuda::standard
