// The fused standard engine for at most N nodes, N = 3, 5 or 9; smaller models leave the last nodes
// absent.
#pragma once

#include <cstdint>
#include <memory>

#include "posattn/model/cuda/small_standard/blocks.h"
#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda::standard {

template <int N>
std::unique_ptr<StepEngine> make_engine(const FleetShape& shape, const BlockTiles& block_tiles);
template <int N>
int64_t engine_bytes(const FleetShape& shape, const BlockTiles& block_tiles);
template <int N>
int64_t engine_shared_bytes();

}  // namespace posattn::cuda::standard
