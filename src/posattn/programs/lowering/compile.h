// A planned network as a model file's weights. Biases are zero, so that the scratch node, which
// starts at zero and reads itself, stays exactly zero.
#pragma once

#include "posattn/model/file/model_file.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/programs/lowering/network_plan.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {

struct CompileOptions {
  // Routes (ModelSpec::routed), or queries and keys as PyTorch loads them: 2 H (n + 1)^2 numbers a
  // layer, for n up to 128. Programs whose messages attention carries always have these.
  bool dense = false;
  // In dense attention, the difference between the score of the place to read and the others. From
  // 104 on the softmax is exactly one-hot in fp32; below, an error remains that grows with depth.
  double sharpness = 1024;
  PlanSizes sizes = {};
  std::string program = {};              // its text, kept in the file as note "program"
  Routing routing = Routing::automatic;  // of messages
};

// Throws Error(configuration) for what cannot be: dense for n above 128, whole numbers whose sums
// may pass 2^24, up to which fp32 is exact.
Model compile(const NetworkPlan& plan, const CompileOptions& options = {});
// Routes its messages and plans it with options.sizes first.
Model compile(const StaticProgram& program, const CompileOptions& options = {});

// A program's network, in fp32, on whatever numbers are given.

// Outputs [samples, processors, outputs] of the model that the routed program was compiled to, for
// inputs of that program (routed_inputs). Throws Error(data) where an input, or what the network
// makes of it, is beyond fp32.
std::vector<double> run_network(const Model& model, const StaticProgram& routed,
                                std::span<const double> inputs, int64_t samples);

}  // namespace posattn
