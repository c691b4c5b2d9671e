#include "posattn/benchmark/stream_inference.h"

#include <fmt/format.h>

#include <algorithm>

#include "posattn/benchmark/steps.h"
#include "posattn/model/causal_network.h"
#include "posattn/model/network.h"

namespace posattn {
namespace {

ModelSpec stream_model(const StreamForm& form, int window, int landmarks) {
  ModelSpec spec;
  spec.kinds = form.kind;
  if (form.kind == "window") spec.kinds += fmt::format(" reach={}", window);
  if (form.kind == "low-rank") spec.kinds += fmt::format(" landmarks={}", landmarks);
  spec.causal = form.causal;
  spec.depth = 1;
  spec.scratch_nodes = 0;
  spec.real_nodes = window;
  return resolve(spec);
}

double size_of(const LinearBlock& map) { return 1.0 * map.in * map.out; }

double maps_of_node(const Plan& plan) {
  const LayerBlock& layer = plan.layers.front();
  double size = size_of(*plan.input.values) + size_of(plan.head.map);
  for (const LinearBlock& map : layer.mlp.maps) size += size_of(map);
  return size + size_of(layer.attention.data->query_key) + size_of(layer.attention.value) +
         size_of(layer.attention.output);
}

// Multiply-adds of one head's attention for one new node, n nodes in the window. A landmark is
// replaced once in n / m nodes: a row of n scores and the inverse, six iterations of four products.
double attention_of_node(const StreamForm& form, double n, double m, double key, double value) {
  if (form.kind == "linear") return 2 * key * value + 2 * key;
  if (form.kind == "low-rank") {
    const double replaced = n * (key + value) + m * m * key + 24 * m * m * m;
    return 2 * m * key + 3 * m * value + m * m + m / n * replaced;
  }
  return (form.anew ? n * n : n) * (key + value);
}

}  // namespace

const std::vector<StreamForm>& stream_forms() {
  static const std::vector<StreamForm> forms = {
      {.name = "softmax, anew", .kind = "data", .anew = true},
      {.name = "softmax, keys and values", .kind = "window", .causal = true},
      {.name = "linear, sums", .kind = "linear", .causal = true},
      {.name = "low-rank, continual", .kind = "low-rank"}};
  return forms;
}

StreamCost measure_stream(const StreamForm& form, int window, int landmarks, double seconds) {
  const ModelSpec spec = stream_model(form, window, landmarks);
  const Plan plan = plan_of(spec);
  const AttentionBlock& block = plan.layers.front().attention;
  Parameters<float> parameters(spec);
  initialise(parameters, 0);
  StreamCost cost;
  cost.attention_multiply_adds =
      block.heads *
      attention_of_node(form, window, landmarks, block.data->key_size, block.head_size);
  cost.multiply_adds = cost.attention_multiply_adds + maps_of_node(plan) * (form.anew ? window : 1);
  int64_t place = 0;
  const auto next = [&] { return static_cast<float>(place++ % 7 - 3); };
  if (form.anew) {
    Network network(spec, {.path = Path::plain, .threads = 1});  // as written
    network.prepare(parameters, window);
    std::vector<float> input(window), output(window);
    std::ranges::generate(input, next);
    const Batch batch{.inputs = input, .samples = 1, .real_nodes = window};
    cost.node_seconds = time_repeated([&] { network.run(batch, output); }, 3, seconds).median;
    return cost;
  }
  const CausalNetwork network(spec, parameters);
  CausalNetwork::Memory memory = network.memory(1);
  const auto read = [&](int64_t nodes) {
    for (int64_t i = 0; i < nodes; ++i) {
      const CausalNetwork::Nodes node{.values = {next()}, .tokens = {}};
      network.read({&node, 1}, memory);
    }
  };
  read(2 * window);
  const int64_t part = std::max(256, window);  // whole parts of landmarks
  cost.node_seconds =
      time_repeated([&] { read(part); }, 3, seconds).median / static_cast<double>(part);
  return cost;
}

}  // namespace posattn
