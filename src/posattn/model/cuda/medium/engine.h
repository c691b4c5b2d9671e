// The fused engine for the paper's models with more nodes than the small ones take: 10 to 80 of
// them, width and hidden width 64, two heads; attention from data in tf32 alone. For .cu files.
#pragma once

#include <memory>

#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda {

bool fused_medium_supports(const ModelSpec& spec, Precision precision);
std::unique_ptr<StepEngine> make_fused_medium(const FleetShape& shape);
int64_t fused_medium_bytes(const FleetShape& shape);
// Shared memory that a block of its kernels takes at most; for models it supports.
int64_t fused_medium_shared_bytes(const ModelSpec& spec);

}  // namespace posattn::cuda
