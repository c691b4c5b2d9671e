#include "posattn/simulation/folded_layer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>

#include "posattn/evaluation/predict.h"
#include "posattn/model/inference.h"
#include "posattn/simulation/calibration.h"
#include "posattn/simulation/choices.h"
#include "posattn/simulation/standard_model_test.h"

namespace posattn::simulation {
namespace {

std::vector<FoldedLayer> folded(const StandardNetwork& network, const Calibration& calibration,
                                LeftOut left_out, KeyPlan plan = {}) {
  if (plan.nodes == 0) plan = {network.nodes, 1, network.causal, network.rotated};
  std::vector<FoldedLayer> layers;
  for (size_t l = 0; l < network.layers.size(); ++l) {
    layers.push_back(
        Folding(network.layers[l], calibration.words[l], l == 0, network.place_words(), plan)
            .without(left_out));
  }
  return layers;
}

TEST(StandardNetwork, IsTheModel) {
  for (const Encoding encoding : {Encoding::one_hot, Encoding::binary, Encoding::sinusoidal}) {
    Model model = testing::standard_model(5, 2, 3, encoding == Encoding::binary);
    model.spec.encoding = encoding;
    model.spec.encoding_size = 0;
    model.spec = resolve(model.spec);
    model.parameters = Parameters<float>(model.spec);
    initialise(model.parameters, 4);
    const Dataset inputs = testing::inputs_for(model, 20, Purpose::test_data);
    const StandardNetwork network = read_standard(model, "it", model.spec.real_nodes);
    const std::vector<double> ours = original_outputs(network, inputs);
    const std::vector<float> theirs =
        Inference(model).run({.inputs = inputs.inputs, .samples = 20, .real_nodes = 5});
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t k = 0; k < ours.size(); ++k) EXPECT_NEAR(ours[k], theirs[k], 1e-5);
  }
}

TEST(StandardNetwork, IsTheModelOfTokens) {
  for (const testing::TokenTask& task : testing::token_tasks) {
    SCOPED_TRACE(task.name);
    const Model model = testing::model_of(task, 2, 3);
    const Dataset inputs = testing::inputs_for(model, 20, Purpose::test_data);
    const int real = model.spec.real_nodes;
    const StandardNetwork network = read_standard(model, "it", real);
    const std::vector<double> ours = original_outputs(network, inputs);
    const Batch batch{
        .inputs = inputs.inputs, .samples = 20, .real_nodes = real, .tokens = inputs.tokens};
    const std::vector<float> theirs = read_outputs(model.spec, Inference(model).run(batch), real);
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t k = 0; k < ours.size(); ++k) EXPECT_NEAR(ours[k], theirs[k], 1e-5);
  }
}

// The copy equals the network if its functions are exact and nothing is left out.
TEST(FoldedLayer, IsExactByExactFunctions) {
  for (const bool causal : {false, true}) {
    for (const int length : {1, 2, 6}) {
      const Model model = testing::standard_model(length, 3, 7, causal, 1 + length % 3);
      const StandardNetwork network = read_standard(model, "it", model.spec.real_nodes);
      const Dataset inputs = testing::inputs_for(model, 40, Purpose::train_data);
      const Calibration calibration = calibrate(network, inputs);
      const std::vector<double> expected = original_outputs(network, inputs);
      for (int copies = 1; copies <= network.nodes; ++copies) {
        const KeyPlan plan{network.nodes, copies, causal};
        const auto layers = folded(network, calibration, {}, plan);
        EXPECT_LT(relative_error(folded_outputs(network, layers, inputs, 1), expected), 1e-7);
        std::vector<double> found;
        for (int64_t s = 0; s < inputs.samples; ++s) {
          Matrix words = first_words(network, inputs, s);
          ExactFunctions exact;
          for (const FoldedLayer& layer : layers) words = run_folded(layer, words, plan, exact);
          std::ranges::copy(decode(network, words), std::back_inserter(found));
        }
        EXPECT_LT(relative_error(found, expected), 1e-7) << length << " " << copies;
      }
    }
  }
}

TEST(FoldedLayer, IsExactForTokens) {
  for (const testing::TokenTask& task : testing::token_tasks) {
    SCOPED_TRACE(task.name);
    const Model model = testing::model_of(task, 2, 7);
    const StandardNetwork network = read_standard(model, "it", model.spec.real_nodes);
    const Dataset inputs = testing::inputs_for(model, 100, Purpose::train_data);
    const auto layers = folded(network, calibrate(network, inputs), {});
    EXPECT_LT(relative_error(folded_outputs(network, layers, inputs, 1),
                             original_outputs(network, inputs)),
              1e-6);
  }
}

TEST(FoldedLayer, IsExactWithRope) {
  for (const bool causal : {false, true}) {
    const Model model = testing::rope_model(5, 2, 7, causal);
    const StandardNetwork network = read_standard(model, "it", 5);
    const Dataset inputs = testing::inputs_for(model, 40, Purpose::train_data);
    const std::vector<double> expected = original_outputs(network, inputs);
    const std::vector<float> theirs =
        Inference(model).run({.inputs = inputs.inputs, .samples = 40, .real_nodes = 5});
    for (size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(expected[k], theirs[k], 1e-5);
    const auto layers = folded(network, calibrate(network, inputs), {});
    EXPECT_LT(relative_error(folded_outputs(network, layers, inputs, 1), expected), 1e-7);
  }
}

TEST(FoldedLayer, LeavesOutWhatItMay) {
  const Model model = testing::standard_model(6, 2, 5);
  const StandardNetwork network = read_standard(model, "it", model.spec.real_nodes);
  const Dataset inputs = testing::inputs_for(model, 300, Purpose::train_data);
  const Calibration calibration = calibrate(network, inputs);
  const auto all = folded(network, calibration, {}),
             few = folded(network, calibration, {0.03, 0.03});
  // A number and a place: their products have two terms for each head.
  EXPECT_EQ(all[0].product_count(), 2 * network.heads());
  EXPECT_LT(few[1].product_count(), all[1].product_count());
  EXPECT_LT(few[1].channel_count(), all[1].channel_count());
  const std::vector<double> expected = original_outputs(network, inputs);
  const double error = relative_error(folded_outputs(network, few, inputs, 1), expected);
  EXPECT_GT(error, 1e-4);
  EXPECT_LT(error, 0.1);
}

TEST(FoldedLayer, FrozenAttentionIsAnotherFunction) {
  const Model model = testing::standard_model(5, 2, 1);
  const StandardNetwork network = read_standard(model, "it", model.spec.real_nodes);
  const Dataset inputs = testing::inputs_for(model, 200, Purpose::train_data);
  const Calibration calibration = calibrate(network, inputs);
  for (const Attention& layer : calibration.mean_attention) {
    for (const Matrix& head : layer) {
      for (int i = 0; i < head.rows; ++i) {
        double sum = 0;
        for (int j = 0; j < head.columns; ++j) sum += head(i, j);
        EXPECT_NEAR(sum, 1, 1e-12);
      }
    }
  }
  EXPECT_GT(relative_error(original_outputs(network, inputs, &calibration.mean_attention),
                           original_outputs(network, inputs)),
            0.01);
}

}  // namespace
}  // namespace posattn::simulation
