// The fused engine for the paper's positional model with more nodes than the small one takes: 10
// to 80 of them, width and hidden width 64, two heads. For .cu files.
#pragma once

#include <memory>

#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda {

bool fused_medium_supports(const ModelSpec& spec);
std::unique_ptr<StepEngine> make_fused_medium(const FleetShape& shape);
int64_t fused_medium_bytes(const FleetShape& shape);
// Shared memory that a block of its kernels takes at most; for models it supports.
int64_t fused_medium_shared_bytes(const ModelSpec& spec);

}  // namespace posattn::cuda
