// The fused engine for positional Transformers of the paper's size: attention from positions alone,
// widths of 64, two maps in the MLP, two heads, one number in and out per node, at most eight real
// and nine nodes. A few kernels per step; what each keeps on the chip, small_positional/kernels.cuh
// says. For .cu files.
#pragma once

#include <cstdint>
#include <memory>

#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda {

bool fused_positional_supports(const ModelSpec& spec);
std::unique_ptr<StepEngine> make_fused_positional(const FleetShape& shape);
// The same with blocks that take the gradients of single tiles, or of groups of them. The bits are
// the same; make_fused_positional takes what is faster.
std::unique_ptr<StepEngine> make_fused_positional_of(const FleetShape& shape, bool single_tiles);
int64_t fused_positional_bytes(const FleetShape& shape);
// Shared memory that a block of its kernels takes at most; for models it supports.
int64_t fused_positional_shared_bytes(const ModelSpec& spec);

}  // namespace posattn::cuda
