// A narrow MLP in an engine whose hidden layers have 64 units: the units that the model does not
// have get weights of zero. They are zero then, their gradients are zero, and everything else is
// computed as without them. Parameters and gradients are copied, few bytes compared with a step's.
// For .cu files.
#pragma once

#include <cstdint>
#include <memory>

#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda {

// The model with as many hidden units as such engines have, if it has fewer.
ModelSpec padded_spec(const ModelSpec& spec);

// `engine` is for shape, but with the padded spec.
std::unique_ptr<StepEngine> make_padded(const FleetShape& shape,
                                        std::unique_ptr<StepEngine> engine);
// How much device memory it takes in addition to the engine's, in bytes.
int64_t padding_bytes(const FleetShape& shape);

}  // namespace posattn::cuda
