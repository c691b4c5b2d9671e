// The fused engine for attention from data (the standard architecture, with positions in the input
// or without) at the paper's shapes: folded layers, tensor cores, one thread block per few tiles of
// samples. For .cu files.
#pragma once

#include <cstdint>
#include <memory>

#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda {

// Attention from data without RoPE, fixed positions in the input or none, up to 9 nodes, width and
// MLP width 64, MLP depth 2, two heads, at least two layers, one data and one output column.
bool fused_standard_supports(const ModelSpec& spec);

std::unique_ptr<StepEngine> make_fused_standard(const FleetShape& shape);

int64_t fused_standard_bytes(const FleetShape& shape);
// Shared memory that a block of its kernels takes at most; for models it supports.
int64_t fused_standard_shared_bytes(const ModelSpec& spec);

}  // namespace posattn::cuda
