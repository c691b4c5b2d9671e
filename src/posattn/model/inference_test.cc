#include "posattn/model/inference.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn {
namespace {

// Whatever was asked before, an answer is the one of a new network.
TEST(Inference, AnswersAsANewNetworkDoes) {
  for (int trial = 0; trial < 12; ++trial) {
    RandomStream random(21, Purpose::test_data, 0, trial);
    const ModelSpec spec =
        trial % 2 == 0 ? testing::random_spec(random) : testing::random_open_spec(random);
    SCOPED_TRACE(to_json(spec));
    const Model model{spec, testing::random_parameters(spec, trial), {}};
    Inference inference(model, 2);
    for (int question = 0; question < 4; ++question) {
      const int real_nodes = 1 + static_cast<int>(random.below(spec.real_nodes));
      const testing::RandomBatch data(spec, 1 + random.below(5), real_nodes, random);
      const std::vector<float> ours = inference.run(data.batch());
      std::vector<float> expected(ours.size());
      Network(spec, {.threads = 2}).forward(model.parameters, data.batch(), expected);
      EXPECT_EQ(ours, expected);
    }
  }
}

TEST(Inference, HasTheGradientOfANetworkAndSeesChangedWeights) {
  RandomStream random(22, Purpose::test_data, 0, 0);
  const ModelSpec spec = testing::random_spec(random);
  const auto model = std::make_shared<Model>(Model{spec, testing::random_parameters(spec, 1), {}});
  Inference made(std::shared_ptr<const Model>(model), 2);
  const testing::RandomBatch data(spec, 5, spec.real_nodes, random);
  const std::vector<float> before = made.run(data.batch());
  const Inference inference = std::move(made);
  Parameters<float> ours(spec), expected(spec);
  const double loss = inference.gradient(data.batch(), data.mask, ours);
  EXPECT_EQ(loss, Network(spec).gradient(model->parameters, data.batch(), data.mask, expected));
  EXPECT_TRUE(std::ranges::equal(ours.values(), expected.values()));
  EXPECT_EQ(inference.run(data.batch()), before);

  model->parameters = testing::random_parameters(spec, 2);
  inference.weights_changed();
  std::vector<float> after(before.size());
  Network(spec).forward(model->parameters, data.batch(), after);
  EXPECT_EQ(inference.run(data.batch()), after);
  EXPECT_NE(after, before);
}

TEST(Inference, RefusesABatchOfAnotherShape) {
  const ModelSpec spec = resolve({});
  Inference inference({spec, Parameters<float>(spec), {}});
  const std::vector<float> numbers(9);
  EXPECT_THROW(inference.run({.inputs = numbers, .samples = 1, .real_nodes = 8}), Error);
  EXPECT_THROW(inference.run({.inputs = numbers, .samples = 1, .real_nodes = 9}), Error);
  EXPECT_EQ(
      inference.run({.inputs = std::span(numbers).first(8), .samples = 1, .real_nodes = 8}).size(),
      8u);
}

}  // namespace
}  // namespace posattn
