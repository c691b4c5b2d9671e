// Every activation of a forward pass by name, for looking inside a model and for changing what it
// computes: ablation, patching. The pass is the block executor's, in fp32: slower than Inference,
// with the same numbers up to rounding.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "posattn/model/spec/batch.h"
#include "posattn/model/spec/parameters.h"
#include "posattn/model/spec/spec.h"

namespace posattn {

// A name and the axes behind that of the samples. Nodes are the real ones, then the scratch nodes.
//   embedding                    [nodes, width]             what the first layer reads
//   layers.L.values              [heads, nodes, head_size]
//   layers.L.attention           [heads, nodes, nodes]      row i: how much node i reads from whom
//   layers.L.heads               [heads, nodes, head_size]  attention times values
//   layers.L.attention_output    [nodes, width]             heads behind the output map
//   layers.L.hidden.K            [nodes, mlp_width]         behind the K-th activation of the MLP
//   layers.L.mlp_output          [nodes, width]             absent where it is the state itself
//   layers.L.state               [nodes, width]             what the next layer reads
struct ActivationPlace {
  std::string name;
  std::vector<int64_t> shape;
};
// In the order in which they are computed.
std::vector<ActivationPlace> activation_places(const ModelSpec& spec, int real_nodes);

// The numbers of a place while a batch is computed: [samples, shape...], of which an index steps by
// `strides` numbers. In a spiking network a sample counts time_steps times, one for each step.
struct ActivationView {
  const std::string& name;
  std::vector<int64_t> shape, strides;
  float* numbers;
};
// Is called once for every place. The pass goes on with the numbers that the hook leaves. In a
// causal model attention to later nodes stays 0.
using ActivationHook = std::function<void(const ActivationView&)>;

// Outputs [samples, real_nodes, output_columns]. All samples are computed at once, so that a hook
// sees them all. Throws as check_batch does, and Error(usage) for samples that need absurdly much
// memory.
std::vector<float> run_with_hook(const ModelSpec& spec, const Parameters<float>& parameters,
                                 const Batch& batch, const ActivationHook& hook);

// The states of all layers for one sample, for looking inside a network. They are computed in fp32
// as the architecture is written: slower than the engines, with the same numbers up to rounding.
struct Activations {
  int nodes = 0, width = 0;  // of nodes the real ones, then the scratch nodes
  // [depth + 1, nodes, width]: encoded, then after each layer; the mean over time steps.
  std::vector<float> states;
  std::vector<float> outputs;  // [real_nodes, output_columns]

  float state(int layers, int node, int column) const {
    return states[(int64_t{1} * layers * nodes + node) * width + column];
  }
};

// Throws as check_batch does.
Activations activations_of(const ModelSpec& spec, const Parameters<float>& parameters,
                           const Batch& one_sample);

}  // namespace posattn
