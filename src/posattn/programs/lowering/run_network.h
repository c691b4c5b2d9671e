// A program's network, in fp32, on whatever numbers are given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posattn/model/model_file.h"
#include "posattn/programs/form/static_program.h"

namespace posattn {

// Outputs [samples, processors, outputs] of the model that the routed program was compiled to, for
// inputs of that program (routed_inputs). Throws Error(data) where an input, or what the network
// makes of it, is beyond fp32.
std::vector<double> run_network(const Model& model, const StaticProgram& routed,
                                std::span<const double> inputs, int64_t samples);

}  // namespace posattn
