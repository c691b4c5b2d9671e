// The library without the program: a small positional Transformer learns cumulative sums of four
// numbers, is saved, loaded again, and answers for numbers outside the range it was trained on.
#include <cstdio>
#include <exception>
#include <vector>

#include "posattn/model/model_file.h"
#include "posattn/model/network.h"
#include "posattn/tasks/dataset.h"
#include "posattn/training/optimiser.h"

namespace {

constexpr int length = 4, steps = 400, batch_size = 250;

posattn::ModelSpec small_positional_spec() {
  posattn::ModelSpec spec;
  posattn::apply_preset("positional", spec);
  spec.real_nodes = length;
  spec.depth = posattn::default_depth(length);
  spec.width = spec.mlp_width = 32;
  return posattn::resolve(spec);
}

int train_and_predict() {
  posattn::Model model{.spec = small_positional_spec(),
                       .parameters = posattn::Parameters<float>(small_positional_spec()),
                       .origin = {}};
  model.origin.task = "cumulative-sum";
  model.origin.length = length;
  posattn::initialise(model.parameters, 0);

  const posattn::Dataset data =
      posattn::make_dataset({.task = &posattn::find_task("cumulative-sum"),
                             .length = length,
                             .samples = int64_t{batch_size} * 40,
                             .range = posattn::training_range(2, false),
                             .seed = 0,
                             .purpose = posattn::Purpose::train_data,
                             .scale = 1,
                             .threads = 1});

  posattn::Network network(model.spec);
  posattn::Parameters<float> gradient(model.spec);
  posattn::OptimiserState<float> state(model.parameters.shared_layout());
  double first = 0, loss = 0;
  for (int step = 0; step < steps; ++step) {
    const int64_t row = int64_t{step} % 40 * batch_size * length;
    const posattn::Batch batch{data.inputs.data() + row, data.targets.data() + row, batch_size,
                               length};
    loss = network.gradient(model.parameters, batch, {}, gradient);
    posattn::optimiser_step({}, 2e-3, gradient, state, model.parameters);
    if (step == 0) first = loss;
  }
  std::printf("mean squared error: %.4f before training, %.6f after %d steps\n", first, loss,
              steps);

  posattn::save_model("cumulative_sum.safetensors", model);
  const posattn::Model loaded = posattn::load_model("cumulative_sum.safetensors");
  const std::vector<float> input{3, -1, 4, 1};
  std::vector<float> output(length);
  network.forward(loaded.parameters, {input.data(), nullptr, 1, length}, output.data());
  std::printf("3 -1 4 1  ->  %.2f %.2f %.2f %.2f  (exactly: 3 2 6 7)\n", output[0], output[1],
              output[2], output[3]);
  return loss < first / 10 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return train_and_predict();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
