#include "posattn/model/hooks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "posattn/base/error.h"
#include "posattn/base/watch.h"
#include "posattn/model/blocks/block_network.h"
#include "posattn/model/routed/routed_network.h"
#include "posattn/model/spec/check_batch.h"
#include "posattn/model/spec/scale_wrap.h"

namespace posattn {
namespace {

constexpr int64_t most_numbers = int64_t{1} << 30;  // of all activations

// Nothing where it is the state itself.
std::optional<ActivationPlace> place_of(const ModelSpec& spec, int64_t nodes, Activated what,
                                        int layer, int map) {
  const auto in_layer = [&](const char* name) { return fmt::format("layers.{}.{}", layer, name); };
  switch (what) {
    case Activated::embedding:
      return ActivationPlace{"embedding", {nodes, spec.width}};
    case Activated::values:
      return ActivationPlace{in_layer("values"), {spec.heads, nodes, spec.head_size()}};
    case Activated::attention:
      return ActivationPlace{in_layer("attention"), {spec.heads, nodes, nodes}};
    case Activated::heads:
      return ActivationPlace{in_layer("heads"), {spec.heads, nodes, spec.head_size()}};
    case Activated::attention_output:
      return ActivationPlace{in_layer("attention_output"), {nodes, spec.width}};
    case Activated::hidden:
      return ActivationPlace{fmt::format("layers.{}.hidden.{}", layer, map),
                             {nodes, spec.mlp_width}};
    case Activated::mlp_output:
      if (spec.join == Join::concatenate && spec.normalisation != Normalisation::after) return {};
      return ActivationPlace{in_layer("mlp_output"), {nodes, spec.width}};
    case Activated::state:
      return ActivationPlace{in_layer("state"), {nodes, spec.width}};
  }
  return {};
}

// In memory all but attention lies [samples, nodes, ...], also where heads come first.
ActivationView view_of(const ActivationPlace& place, int64_t samples, Activated what,
                       std::span<float> numbers) {
  std::vector<int64_t> shape = place.shape, strides(shape.size() + 1, 1);
  shape.insert(shape.begin(), samples);
  for (size_t k = shape.size() - 1; k-- > 0;) strides[k] = strides[k + 1] * shape[k + 1];
  if (what == Activated::values || what == Activated::heads) {
    strides[1] = shape[3];
    strides[2] = shape[1] * shape[3];
  }
  return {place.name, std::move(shape), std::move(strides), numbers.data()};
}

void mask_later_nodes(int64_t nodes, std::span<float> attention) {
  for (size_t row = 0; row * nodes < attention.size(); ++row) {
    float* of_node = attention.data() + row * nodes;
    std::fill(of_node + row % nodes + 1, of_node + nodes, 0.0F);
  }
}

}  // namespace

std::vector<ActivationPlace> activation_places(const ModelSpec& spec, int real_nodes) {
  std::vector<ActivationPlace> places;
  const int64_t nodes = int64_t{real_nodes} + spec.scratch_nodes;
  const auto add = [&](Activated what, int layer, int map) {
    if (auto place = place_of(spec, nodes, what, layer, map)) places.push_back(std::move(*place));
  };
  add(Activated::embedding, 0, 0);
  const Plan plan = plan_of(spec);
  for (int layer = 0; layer < spec.applied_layers(real_nodes); ++layer) {
    const LayerBlock& block = plan.layers[layer % plan.layers.size()];
    for (const Activated what :
         {Activated::values, Activated::attention, Activated::heads, Activated::attention_output}) {
      if (what == Activated::attention || block.attention.mixes()) add(what, layer, 0);
    }
    const auto maps = static_cast<int>(block.mlp.maps.size());
    for (int map = 0; map + 1 < maps; ++map) add(Activated::hidden, layer, map);
    if (maps > 0) add(Activated::mlp_output, layer, 0);
    add(Activated::state, layer, 0);
  }
  return places;
}

std::vector<float> run_with_hook(const ModelSpec& spec, const Parameters<float>& parameters,
                                 const Batch& batch, const ActivationHook& hook) {
  check_batch(spec, batch);
  const int64_t frames = batch.samples * std::max(1, spec.time_steps);
  double numbers = 0;
  for (const ActivationPlace& place : activation_places(spec, batch.real_nodes)) {
    numbers += std::accumulate(place.shape.begin(), place.shape.end(), static_cast<double>(frames),
                               std::multiplies<>());
  }
  if (numbers > static_cast<double>(most_numbers)) {
    throw Error(ExitCode::usage,
                fmt::format("{:.3g} activations of {} samples", numbers, batch.samples),
                fmt::format("at most {} at once", most_numbers), "run fewer samples at a time");
  }
  std::vector<float> outputs;
  if (batch.samples == 0) return outputs;
  BlockNetwork<float> network(spec);
  network.prepare(parameters, batch.real_nodes);
  const int64_t nodes = network.nodes();
  const BlockHook<float> named = [&](Activated what, int layer, int map, std::span<float> numbers) {
    Watch::look();
    const auto place = place_of(spec, nodes, what, layer, map);
    if (!place) return;
    hook(view_of(*place, frames, what, numbers));
    if (what == Activated::attention && spec.causal) mask_later_nodes(nodes, numbers);
  };
  BlockTape<float> tape;
  tape.scratch.hook = &named;
  const ScaledBatch<float> scaled(spec, batch);
  network.forward(scaled.batch(), 0, static_cast<int>(batch.samples), tape);
  const int64_t of_sample = int64_t{1} * batch.real_nodes * spec.output_columns;
  for (int64_t s = 0; s < batch.samples; ++s) {  // of each sample the real nodes
    const auto first = tape.output.begin() + s * nodes * spec.output_columns;
    outputs.insert(outputs.end(), first, first + of_sample);
  }
  scaled.multiply_back(outputs);
  return outputs;
}

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
    found.states = network.states(one_sample.inputs.data(), one_sample.tokens.data());
    found.outputs.resize(outputs);
    network.forward(one_sample.inputs.data(), 1, found.outputs.data(), 1, one_sample.tokens.data());
    return found;
  }
  BlockNetwork<float> network(spec);
  network.prepare(parameters, one_sample.real_nodes);
  BlockTape<float> tape;
  const ScaledBatch<float> scaled(spec, one_sample);
  network.forward(scaled.batch(), 0, 1, tape);
  const size_t steps = std::max(1, spec.time_steps);
  const auto add_state = [&](const std::vector<float>& x) {
    const size_t count = x.size() / steps;
    for (size_t i = 0; i < count; ++i) {
      float sum = 0;
      for (size_t t = 0; t < steps; ++t) sum += x[t * count + i];
      found.states.push_back(sum / static_cast<float>(steps));
    }
  };
  for (const auto& layer : tape.layers) add_state(layer.x);
  add_state(tape.decoder_input);
  found.outputs.assign(tape.output.begin(), tape.output.begin() + outputs);  // scratch nodes last
  scaled.multiply_back(found.outputs);
  return found;
}

}  // namespace posattn
