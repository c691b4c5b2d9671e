// Which engine trains a model on which card: a fused one where one knows the model and the card has
// the shared memory for its kernels, else the general one. No CUDA types.
#pragma once

#include <string>
#include <vector>

#include "posattn/kernels/cuda/device_limits.h"
#include "posattn/kernels/cuda/fleet.h"
#include "posattn/model/network.h"
#include "posattn/model/spec.h"

namespace posattn::cuda {

// The engine's name: "general", "fused-positional", "fused-standard" or "fused-medium".
//   Path::plain: general. Path::folded: a fused engine, or Error(configuration) where none fits.
//   Path::automatic: a fused engine where one fits, else general.
std::string choose_engine(const ModelSpec& spec, Precision precision, Path path,
                          const DeviceLimits& limits);

// Which engine a preset with the paper's sizes takes at first to last real nodes.
struct EngineRange {
  std::string preset;
  int first_nodes, last_nodes;
  std::string engine;
  bool operator==(const EngineRange&) const = default;
};
// Lists the engines of the positional and the standard model up to the paper's 64 nodes, in tf32,
// the default.
std::vector<EngineRange> paper_engines(const DeviceLimits& limits);

}  // namespace posattn::cuda
