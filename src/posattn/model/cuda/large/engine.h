// The fused engine for models beyond the small ones' sizes: up to 64 nodes and a scratch node,
// widths up to 128. Attention from positions or from data, folded, any such model whose layers
// large/layer.h takes. For .cu files.
#pragma once

#include <memory>

#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda {

bool fused_large_supports(const ModelSpec& spec);
std::unique_ptr<StepEngine> make_fused_large(const FleetShape& shape);
int64_t fused_large_bytes(const FleetShape& shape);
// Shared memory that a block of its kernels takes at most; for models it supports.
int64_t fused_large_shared_bytes(const ModelSpec& spec);

}  // namespace posattn::cuda
