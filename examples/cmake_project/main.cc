// The library without the program: a small positional Transformer learns cumulative sums of four
// numbers, is saved and loaded again, and answers for numbers outside the range it was trained on.
#include <cstdio>
#include <exception>
#include <vector>

#include "posattn/model.h"
#include "posattn/network.h"
#include "posattn/task.h"
#include "posattn/train.h"

namespace {

constexpr int length = 4, steps = 1000, batch_size = 250;

// The same keys as in the configuration files of `posattn train`.
constexpr const char* settings = R"toml(
task = "cumulative-sum"
architecture = "positional"
length = 4
width = 32
mlp-width = 32
)toml";

int train_and_predict() {
  const posattn::RunConfig config = posattn::read_config_text(settings, "settings").config;
  const posattn::ModelSpec spec = posattn::model_spec(config);
  posattn::Model model{.spec = spec, .parameters = posattn::Parameters<float>(spec), .origin = {}};
  model.origin.task = config.task;
  model.origin.length = length;
  posattn::initialise(model.parameters, 0);

  const posattn::Dataset data = posattn::make_dataset({.task = &posattn::find_task(config.task),
                                                       .length = length,
                                                       .samples = int64_t{batch_size} * 40,
                                                       .range = posattn::training_range(2, false),
                                                       .seed = 0,
                                                       .purpose = posattn::Purpose::train_data,
                                                       .scale = 1,
                                                       .threads = 1});

  posattn::Network network(spec);
  posattn::Parameters<float> gradient(spec);
  posattn::OptimiserState<float> state(model.parameters.shared_layout());
  double first = 0, loss = 0;
  for (int step = 0; step < steps; ++step) {
    const int64_t row = int64_t{step} % 40 * batch_size * length;
    const posattn::Batch batch{std::span(data.inputs).subspan(row, batch_size * length),
                               std::span(data.targets).subspan(row, batch_size * length),
                               batch_size, length};
    loss = network.gradient(model.parameters, batch, {}, gradient);
    posattn::optimiser_step({}, 2e-3, gradient, state, model.parameters);
    if (step == 0) first = loss;
  }
  std::printf("mean squared error: %.4f before training, %.6f after %d steps\n", first, loss,
              steps);

  posattn::save_model("cumulative_sum.safetensors", model);
  posattn::Inference inference(posattn::load_model("cumulative_sum.safetensors"));
  const std::vector<float> input{3, -1, 4, 1};
  const std::vector<float> output =
      inference.run({.inputs = input, .samples = 1, .real_nodes = length});
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
