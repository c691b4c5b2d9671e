#include "posattn/model/inference.h"

#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/model/random_spec_test.h"

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
