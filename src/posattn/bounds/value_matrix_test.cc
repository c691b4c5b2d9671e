#include "posattn/bounds/value_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/bounds/bias_scaling.h"
#include "posattn/bounds/scale_law.h"
#include "posattn/evaluation/predict.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn::bounds {
namespace {

// Node 0 asks with its token which of the other nodes' numbers is wanted, and has none itself.
class AskTask : public Task {
 public:
  std::string_view name() const override { return "ask-of-a-test"; }
  std::string_view description() const override { return "the number of the node that is asked"; }
  TaskShape shape(int length) const override {
    return {.real_nodes = length, .vocabulary = length, .read_nodes = 1, .tokens_and_values = true};
  }
  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    draw_values(random, sampling.range, room.values);
    room.values[0] = 0;
    for (int i = 1; i < length; ++i) room.tokens[i] = -1;
    room.tokens[0] = 1 + static_cast<int32_t>(random.below(length - 1));
    room.targets[0] = room.values[room.tokens[0]];
  }
};

// A model of one layer and one head that does this task by hand: a token t is the unit vector e_t,
// node j has e_j as its position, and node 0 attends to node j where its token is j, with scores
// of `sharpness`.
Model asking_model(double sharpness) {
  ModelSpec spec;
  spec.real_nodes = spec.vocabulary = 4;
  spec.scratch_nodes = 0;
  spec.width = 8;
  spec.value_width = 1;
  spec.heads = spec.depth = 1;
  spec.read_nodes = 1;
  spec.tokens_and_values = true;
  apply_preset("two-streams-linear", spec);
  spec = resolve(spec);
  Parameters<float> weights(spec);
  std::ranges::fill(weights.values(), 0.0f);
  const auto set = [&](const std::string& name, int row, int column, double value) {
    const TensorInfo& tensor = weights.layout().at(name);
    weights.slice(tensor)[row * tensor.shape.back() + column] = static_cast<float>(value);
  };
  const std::string layer = "transformer_layers.0.";
  for (int i = 0; i < 4; ++i) {
    set("tokens.weight", i, i, 1);
    set("encoding.weight", 4 + i, i, 1);
    set(layer + "attn.qk_proj.weight", i, i, sharpness);  // a query is the token
    set(layer + "attn.qk_proj.weight", 8 + i, 4 + i, 1);  // a key the position
  }
  std::ranges::fill(weights[layer + "attn_norm.weight"], 1.0f);
  set(layer + "values.v_proj.weight", 0, 0, 1);
  set(layer + "values.o_proj.weight", 0, 0, 1);
  set("values.encoder.weight", 0, 0, 1);
  set("values.head.weight", 0, 0, 1);
  Model model{.spec = spec, .parameters = std::move(weights), .origin = {}};
  model.origin.task = "ask-of-a-test";
  model.origin.length = 4;
  return model;
}

struct Sample {
  std::vector<float> inputs = {0, 1.5f, -3, 0.25f};
  std::vector<int32_t> tokens = {2, -1, -1, -1};
  Batch batch() const {
    return {.inputs = inputs, .samples = 1, .real_nodes = 4, .tokens = tokens};
  }
};

TEST(ValueMatrix, IsWhatTheModelMultipliesBy) {
  const Model model = asking_model(2);
  const Sample sample;
  const ValueMatrix matrix = value_matrix(model, sample.batch());
  EXPECT_THAT(matrix.inputs, ::testing::ElementsAre(1, 2, 3));
  ASSERT_EQ(matrix.rows(), 1);
  double sum = 0;
  for (int i = 0; i < 3; ++i) sum += matrix.entries[i] * sample.inputs[matrix.inputs[i]];
  EXPECT_NEAR(predict(model, sample.batch(), 1).at(0), sum, 1e-6);
}

TEST(ValueMatrix, RoundsToTheExactAnswerOfAnyNumbers) {
  const Model sharp = asking_model(20);
  Sample sample;
  const ValueMatrix matrix = value_matrix(sharp, sample.batch());
  EXPECT_THAT(matrix.rounded(), ::testing::ElementsAre(0, 1, 0));
  EXPECT_LT(matrix.distance(), 0.5);
  EXPECT_GE(matrix.row_distance(), matrix.distance());
  sample.inputs[2] = 12345.678f;
  EXPECT_EQ(rounded_answer(matrix, sample.batch()).at(0), 12345.678f);
  // The error of a model is at most what the distance says, here with numbers in [-a, a].
  const Model blunt = asking_model(3);
  const ValueMatrix near = value_matrix(blunt, sample.batch());
  EXPECT_GT(near.row_distance(), 1e-3);
  const double answer = predict(blunt, sample.batch(), 1).at(0);
  EXPECT_LE(std::abs(answer - 12345.678), 12345.678 * (near.row_distance() + 1e-6));
}

TEST(ValueMatrix, CountsTheSamplesThatRoundToTheAnswer) {
  register_task(std::make_unique<AskTask>());
  const Task& task = find_task("ask-of-a-test");
  const Model sharp = asking_model(20), blunt = asking_model(0);
  MatrixRequest request{.model = &sharp, .task = &task, .samples = 200, .threads = 2};
  const MatrixShare right = matrix_share(request);
  EXPECT_EQ(right.right, 200);
  // Clopper and Pearson without a failure: 1 - p with (1 - p)^n = 1 - confidence.
  EXPECT_NEAR(right.at_least, std::pow(0.01, 1 / 200.0), 1e-9);
  request.model = &blunt;  // means of all numbers: nothing rounds to one
  const MatrixShare wrong = matrix_share(request);
  EXPECT_EQ(wrong.right, 0);
  EXPECT_EQ(wrong.at_least, 0);
  EXPECT_GT(wrong.row_distance, right.row_distance);
}

TEST(ValueMatrix, OtherModelsAreRefused) {
  const Sample sample;
  for (const char* preset : {"two-streams", "two-streams-gated", "standard"}) {
    ModelSpec spec = asking_model(1).spec;
    spec.value_width = 0;
    apply_preset(preset, spec);
    spec.encoding_size = 0;
    spec = resolve(spec);
    const Model model{.spec = spec, .parameters = Parameters<float>(spec), .origin = {}};
    EXPECT_NE(matrix_broken_by(spec), "") << preset;
    EXPECT_THROW(value_matrix(model, sample.batch()), Error);
  }
  Sample zeros;
  std::ranges::fill(zeros.inputs, 0.0f);
  EXPECT_THROW(value_matrix(asking_model(1), zeros.batch()), Error);
}

// The law of scale knows them, though they have tokens, positions, LayerNorm and biases.
TEST(ValueMatrix, ModelsOfTwoStreamsAreHomogeneous) {
  Model model = asking_model(1);
  model.parameters = random_parameters(model.spec, 1);
  const ScaleLaw law = scale_law(model);
  EXPECT_EQ(law.broken_by, "");
  EXPECT_EQ(law.layers.at(0).scores, 0);
  EXPECT_EQ(law.layers.at(0).attention, 0);
  EXPECT_TRUE(std::ranges::equal(divide_biases(model.spec, model.parameters, 7).values(),
                                 model.parameters.values()));
}

}  // namespace
}  // namespace posattn::bounds
