#include "posattn/training/optimiser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "posattn/base/error.h"

namespace posattn {
namespace {

ModelSpec small_spec() {
  ModelSpec spec;
  spec.real_nodes = 2;
  spec.width = 4;
  spec.depth = 1;
  spec.mlp_width = 4;
  spec.encoding = Encoding::random;  // gives one tensor that is not trained
  return resolve(spec);
}

// Three steps on the first three weights; expected values from PyTorch 1.13 in double
// (lr 0.01, betas 0.9 and 0.95, eps 1e-8, the gradients below).
template <class T>
std::vector<T> three_steps(OptimiserKind kind, double weight_decay) {
  const auto layout = std::make_shared<const ParameterLayout>(small_spec());
  const auto trained = std::ranges::find_if(
      layout->tensors(), [](const TensorInfo& t) { return t.trained && t.size >= 3; });
  Parameters<T> parameters(layout), gradient(layout);
  OptimiserState<T> state(layout);
  const std::array<T, 3> start = {1, -0.5, 2};
  std::ranges::copy(start, parameters.slice(*trained).begin());
  const std::array<std::array<T, 3>, 3> gradients = {
      {{0.5, -2, 0}, {0.25, 1, -0.125}, {-1, 3, 0.5}}};
  const OptimiserOptions options{kind, 0.9, 0.95, 1e-8, weight_decay};
  for (const auto& values : gradients) {
    std::ranges::copy(values, gradient.slice(*trained).begin());
    optimiser_step(options, 0.01, gradient, state, parameters);
  }
  EXPECT_EQ(state.step, 3);
  const auto result = parameters.slice(*trained);
  return {result.begin(), result.begin() + 3};
}

template <class T>
void expect_pytorch(double tolerance) {
  const std::vector<std::pair<std::vector<T>, std::array<double, 3>>> cases = {
      {three_steps<T>(OptimiserKind::adam, 0),
       {0.9826412699413539, -0.4911750724095621, 2.0026569254272304}},
      {three_steps<T>(OptimiserKind::adam, 0.1),
       {0.9809728564816357, -0.49069072065588953, 1.9731036389935526}},
      {three_steps<T>(OptimiserKind::adamw, 0.1),
       {0.9796736518713977, -0.4896992456039259, 1.9966555738280287}},
  };
  for (const auto& [actual, expected] : cases) {
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
  }
}

TEST(Optimiser, MatchesPyTorchInDouble) { expect_pytorch<double>(1e-15); }
TEST(Optimiser, MatchesPyTorchInFloat) { expect_pytorch<float>(5e-7); }

TEST(Optimiser, LeavesUntrainedTensorsAndPaddingAlone) {
  Parameters<float> parameters(small_spec());
  initialise(parameters, 3);
  const Parameters<float> before = parameters;
  Parameters<float> gradient(parameters.shared_layout());
  std::ranges::fill(gradient.values(), 1.0f);
  OptimiserState<float> state(parameters.shared_layout());
  optimiser_step({OptimiserKind::adamw, 0.9, 0.999, 1e-8, 0.1}, 0.01, gradient, state, parameters);
  std::vector<bool> covered(parameters.values().size(), false);
  bool saw_untrained = false;
  for (const TensorInfo& tensor : parameters.layout().tensors()) {
    saw_untrained |= !tensor.trained;
    for (int64_t i = tensor.offset; i < tensor.offset + tensor.size; ++i) {
      covered[i] = true;
      EXPECT_EQ(parameters.values()[i] == before.values()[i], !tensor.trained) << tensor.name;
    }
  }
  EXPECT_TRUE(saw_untrained);
  for (std::size_t i = 0; i < covered.size(); ++i) {
    EXPECT_TRUE(covered[i] || parameters.values()[i] == 0.0f) << i;
  }
}

TEST(Optimiser, DecayOfLinearMapsLeavesTheRestAlone) {
  ModelSpec spec;
  spec.vocabulary = 3;
  spec.encoding = Encoding::learned;
  spec.normalisation = Normalisation::before;
  const auto layout = std::make_shared<const ParameterLayout>(resolve(spec));
  Parameters<float> parameters(layout), gradient(layout);
  OptimiserState<float> state(layout);
  for (const TensorInfo& tensor : layout->tensors()) {
    std::ranges::fill(parameters.slice(tensor), 1.0f);
  }
  optimiser_step({.kind = OptimiserKind::adamw, .weight_decay = 0.5, .decay = Decay::maps}, 0.1,
                 gradient, state, parameters);
  int pulled = 0;
  for (const TensorInfo& tensor : layout->tensors()) {
    const bool table = tensor.name == "tokens.weight" || tensor.name == "positions.weight";
    const bool map = tensor.shape.size() == 2 && !table;
    EXPECT_FLOAT_EQ(parameters.slice(tensor)[0], map ? 0.95f : 1.0f) << tensor.name;
    pulled += map ? 1 : 0;
  }
  EXPECT_EQ(pulled, 2 + 5 * spec.depth);
}

TEST(Optimiser, ClipsByTheJointNormOfTrainedTensors) {
  Parameters<double> gradient(small_spec());
  const auto& tensors = gradient.layout().tensors();
  for (const TensorInfo& tensor : tensors) {
    if (!tensor.trained) gradient.slice(tensor)[0] = 1e6;
  }
  const auto weight = gradient.slice(gradient.layout().at("decoding.weight"));
  const auto bias = gradient.slice(gradient.layout().at("decoding.bias"));
  weight[0] = 3;
  bias[0] = 4;
  EXPECT_DOUBLE_EQ(clip_gradient(10.0, gradient), 5);
  EXPECT_EQ(weight[0], 3);
  EXPECT_DOUBLE_EQ(clip_gradient(1.0, gradient), 5);
  EXPECT_DOUBLE_EQ(weight[0], 0.599999880000024);  // PyTorch's clip_grad_norm_
  EXPECT_DOUBLE_EQ(bias[0], 0.799999840000032);
}

// Without an epsilon a step has the same size whatever the gradient's; what has none stays.
TEST(Optimiser, NeedsNoEpsilon) {
  const auto layout = std::make_shared<const ParameterLayout>(small_spec());
  const auto step = [&]<class T>(T scale) {
    Parameters<T> parameters(layout), gradient(layout);
    OptimiserState<T> state(layout);
    const TensorInfo& tensor = layout->at("decoding.weight");
    for (int t = 0; t < 5; ++t) {
      for (int i = 0; i < 3; ++i) gradient.slice(tensor)[i] = scale * T(i + 1) / T(t - 7);
      optimiser_step({.epsilon = 0}, 0.01, gradient, state, parameters);
    }
    return std::vector<T>(parameters.values().begin(), parameters.values().end());
  };
  EXPECT_EQ(step(1.0f), step(0x1p-40f));
  EXPECT_EQ(step(1.0), step(0x1p40));
  // Three numbers have a gradient, and squares below the least float are none.
  EXPECT_EQ(std::ranges::count(step(1.0f), 0.0f), std::ssize(step(1.0f)) - 3);
  EXPECT_EQ(std::ranges::count(step(1e-30f), 0.0f), std::ssize(step(1.0f)));
}

TEST(Optimiser, RelativeLimitIsAMultipleOfTheNormOfEarlierSteps) {
  const auto layout = std::make_shared<const ParameterLayout>(small_spec());
  OptimiserState<double> state(layout);
  Parameters<double> gradient(layout), parameters(layout);
  const OptimiserOptions options{.beta2 = 0.75};
  const auto limit = [&] { return relative_limit(options, 2, state); };
  EXPECT_EQ(limit(), std::numeric_limits<double>::infinity());
  optimiser_step(options, 0.01, gradient, state, parameters);
  EXPECT_EQ(limit(), std::numeric_limits<double>::infinity());  // 0 says nothing
  gradient.slice(layout->at("decoding.weight"))[0] = 3;
  gradient.slice(layout->at("decoding.bias"))[0] = 4;
  optimiser_step(options, 0.01, gradient, state, parameters);
  optimiser_step(options, 0.01, gradient, state, parameters);
  // The mean of 0, 25, 25 with weights 0.75^2, 0.75, 1.
  EXPECT_DOUBLE_EQ(limit(), 2 * std::sqrt(25 * 1.75 / (0.5625 + 1.75)));
  clip_gradient(0.5, gradient, 0);
  EXPECT_DOUBLE_EQ(gradient.slice(layout->at("decoding.weight"))[0], 0.3);
}

TEST(Optimiser, NamesAreKnown) {
  EXPECT_EQ(optimiser_kind_from("adamw"), OptimiserKind::adamw);
  EXPECT_THROW(optimiser_kind_from("sgd"), Error);
}

}  // namespace
}  // namespace posattn
