#include "posattn/model/activations.h"

#include "posattn/model/blocks/block_network.h"
#include "posattn/model/routed/routed_network.h"
#include "posattn/model/spec/check_batch.h"

namespace posattn {

Activations activations_of(const ModelSpec& spec, const Parameters<float>& parameters,
                           const Batch& one_sample) {
  check_batch(spec, one_sample);
  Activations found{.nodes = one_sample.real_nodes + spec.scratch_nodes,
                    .width = spec.width,
                    .states = {},
                    .outputs = {}};
  const int64_t outputs = int64_t{1} * one_sample.real_nodes * spec.output_columns;
  if (spec.routed()) {
    const RoutedNetwork<float> network(spec, parameters);
    found.states = network.states(one_sample.inputs.data());
    found.outputs.resize(outputs);
    network.forward(one_sample.inputs.data(), 1, found.outputs.data());
    return found;
  }
  BlockNetwork<float> network(spec);
  network.prepare(parameters, one_sample.real_nodes);
  BlockTape<float> tape;
  network.forward(one_sample, 0, 1, tape);
  for (const auto& layer : tape.layers) {
    found.states.insert(found.states.end(), layer.x.begin(), layer.x.end());
  }
  found.states.insert(found.states.end(), tape.decoder_input.begin(), tape.decoder_input.end());
  found.outputs.assign(tape.output.begin(), tape.output.begin() + outputs);  // scratch nodes last
  return found;
}

}  // namespace posattn
