// The fused standard engine for tf32 and more than five nodes: tiles of halves.
#pragma once

#include <cstdint>
#include <memory>

#include "posattn/model/cuda/small_standard/blocks.h"
#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda::standard {

std::unique_ptr<StepEngine> make_half_engine(const FleetShape& shape,
                                             const BlockTiles& block_tiles);
int64_t half_engine_bytes(const FleetShape& shape, const BlockTiles& block_tiles);
int64_t half_engine_shared_bytes();

}  // namespace posattn::cuda::standard
