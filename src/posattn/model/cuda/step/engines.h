// The table of fused engines has a row for each, which its engine.cu defines. For .cu files.
#pragma once

#include <memory>

#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda {

struct EngineRow {
  const char* name;
  bool (*supports)(const ModelSpec& spec, Precision precision);
  // Shared memory that a block of its kernels takes at most; for models it supports.
  int64_t (*shared_bytes)(const ModelSpec& spec);
  int64_t (*bytes)(const FleetShape& shape);  // device memory
  std::unique_ptr<StepEngine> (*make)(const FleetShape& shape);
};

// Takes attention from positions, width and hidden width 64, two maps in the MLP, two heads, one
// number in and out per node, at least two layers, at most eight real and nine nodes.
extern const EngineRow fused_positional;
// Takes the same sizes, but attention from data without RoPE.
extern const EngineRow fused_standard;
// Takes 9 to 80 nodes, width and hidden width 64, two heads, no RoPE; attention from data in tf32
// alone.
extern const EngineRow fused_medium;

}  // namespace posattn::cuda
