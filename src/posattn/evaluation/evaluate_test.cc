#include "posattn/evaluation/evaluate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/evaluation/model_for_test.h"
#include "posattn/model/blocks/reference_network.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

EvaluationRequest request_for(const Model& model, std::vector<double> scales) {
  return {.model = &model,
          .task = &find_task(model.origin.task),
          .values = std::move(scales),
          .samples = 40,
          .seed = 9};
}

double mse_of(std::span<const Measurement> rows) {
  return find_value(rows, {.axis = rows[0].axis, .x = rows[0].x, .metric = "mse"}).value();
}

DatasetRequest same_data(const EvaluationRequest& request, int length, double scale) {
  return {.task = request.task,
          .length = length,
          .samples = request.samples,
          .range = test_range(request.model->origin.range, scale, false),
          .seed = request.seed,
          .purpose = request.purpose,
          .scale = scale};
}

TEST(Evaluate, AgreesWithTheReferenceNetwork) {
  for (const char* task : {"cumulative-sum", "min-sum", "path"}) {
    Model model = model_for(task, 5);
    initialise(model.parameters, 3);
    EvaluationRequest request = request_for(model, {1, 3});
    request.threads = 2;
    const Evaluation found = evaluate(request);
    ASSERT_EQ(found.details.size(), 2u);
    EXPECT_THAT(tested_values(found.rows, "c"), testing::ElementsAre(1, 3));
    for (const TestDetails& details : found.details) {
      const Dataset set = make_dataset(same_data(request, 5, details.x));
      const std::vector<double> inputs(set.inputs.begin(), set.inputs.end());
      const std::vector<double> outputs = reference_forward(
          model.spec, to_double(model.parameters),
          {.inputs = inputs, .samples = set.samples, .real_nodes = set.shape.real_nodes});
      double sum = 0;
      for (size_t i = 0; i < outputs.size(); ++i) {
        const auto in_sample = static_cast<int>(i % set.shape.target_count());
        const int columns = set.shape.output_columns;
        if (!request.task->counts(5, in_sample / columns, in_sample % columns)) continue;
        sum += std::pow(outputs[i] - set.targets[i], 2);
      }
      const double mse = sum / static_cast<double>(outputs.size());
      const auto value = [&](const char* metric) {
        return find_value(found.rows, {.axis = "c", .x = details.x, .metric = metric}).value();
      };
      EXPECT_NEAR(value("mse"), mse, 1e-5 * mse) << task << ", c = " << details.x;
      EXPECT_DOUBLE_EQ(value("mse_over_c2"), value("mse") / (details.x * details.x));
      EXPECT_EQ(static_cast<int>(details.mse_per_node.size()), model.spec.real_nodes);
      EXPECT_TRUE(details.per_length.empty());
    }
  }
}

// With every weight zero all outputs are the decoder's bias, whatever the engine does inside.
TEST(Evaluate, VariableLengthsAreMeansOverSamples) {
  Model model = model_for("cumulative-min", 4, true);
  const float bias = 0.5f;
  model.parameters["decoding.bias"][0] = bias;
  EvaluationRequest request = request_for(model, {2});
  request.samples = 42;
  const Evaluation found = evaluate(request);
  const TestDetails& details = found.details.at(0);
  ASSERT_EQ(details.per_length.size(), 4u);
  double sum = 0;
  double at_last_node = 0;
  for (int i = 0; i < 4; ++i) {
    const LengthPart& part = details.per_length[i];
    EXPECT_EQ(part.length, i + 1);
    EXPECT_EQ(part.samples, i < 2 ? 11 : 10);
    DatasetRequest data = same_data(request, i + 1, 2);
    data.samples = part.samples;
    const Dataset set = make_dataset(data);
    double squared = 0;
    for (const double target : set.targets) squared += (bias - target) * (bias - target);
    EXPECT_NEAR(mse_of(part.rows), squared / static_cast<double>(set.targets.size()),
                1e-6 * squared);
    sum += mse_of(part.rows) * static_cast<double>(part.samples);
    if (i == 3) {
      for (int64_t s = 0; s < set.samples; ++s) {
        at_last_node += std::pow(bias - set.targets[4 * s + 3], 2) / 10;
      }
    }
  }
  EXPECT_NEAR(mse_of(found.rows), sum / 42, 1e-9 * sum);
  EXPECT_NEAR(details.mse_per_node.at(3), at_last_node, 1e-6 * at_last_node);
}

TEST(Evaluate, AccuracyCountsWholeSamples) {
  Model model = model_for("cumulative-max", 2);
  const EvaluationRequest request = request_for(model, {1});
  const Dataset set = make_dataset(same_data(request, 2, 1));
  int accurate = 0;
  for (int64_t s = 0; s < set.samples; ++s) {
    accurate +=
        std::abs(set.targets[2 * s]) <= 0.1 / 0.9 && std::abs(set.targets[2 * s + 1]) <= 0.1 / 0.9;
  }
  // Outputs are zero, and |0 - t| <= 0.1 + 0.1 |t| where |t| <= 1/9.
  const std::optional<double> accuracy =
      find_value(evaluate(request).rows, {.axis = "c", .x = 1, .metric = "accuracy"});
  EXPECT_DOUBLE_EQ(accuracy.value(), accurate / 40.0);
}

TEST(Evaluate, ResultsDoNotDependOnThreadsOrOtherScales) {
  Model model = model_for("sort", 6);
  initialise(model.parameters, 1);
  EvaluationRequest request = request_for(model, {1, 5});
  const Evaluation both = evaluate(request);
  request.values = {5};
  request.threads = 3;
  const Evaluation alone = evaluate(request);
  EXPECT_EQ(find_value(both.rows, {.axis = "c", .x = 5, .metric = "mse"}), mse_of(alone.rows));
  EXPECT_EQ(both.details[1].mse_per_node, alone.details[0].mse_per_node);
  request.purpose = Purpose::test_data;
  EXPECT_NE(mse_of(evaluate(request).rows), mse_of(alone.rows));
}

// Answers every question with a number.
class Constant : public ForwardPass {
 public:
  explicit Constant(float answer) : answer_(answer) {}
  void forward(const Parameters<float>&, const Batch& batch, std::span<float> outputs) override {
    samples += batch.samples;
    std::ranges::fill(outputs, answer_);
  }
  int64_t samples = 0;

 private:
  float answer_;
};

TEST(Evaluate, AnotherNetworkTakesThePlaceOfTheCpuEngine) {
  Model model = model_for("sort", 6);
  EvaluationRequest request = request_for(model, {2});
  const Evaluation zeros = evaluate(request);  // its weights are zero
  initialise(model.parameters, 1);
  Constant zero(0), one(1);
  request.network = &zero;
  EXPECT_EQ(mse_of(evaluate(request).rows), mse_of(zeros.rows));
  request.network = &one;
  EXPECT_NE(mse_of(evaluate(request).rows), mse_of(zeros.rows));
  EXPECT_EQ(one.samples, 40);
}

// A network of one length does not have another's.
TEST(Evaluate, OtherLengthsAreTheCpuEngines) {
  Model model = model_for("sort", 6);
  apply_preset("relative", model.spec);
  model.spec = resolve(model.spec);
  model.parameters = Parameters<float>(model.spec);
  Constant one(1);
  EvaluationRequest request = request_for(model, {5, 6});
  request.axis = &find_evaluation_axis("length");
  request.network = &one;
  const Evaluation found = evaluate(request);
  EXPECT_EQ(one.samples, 40);
  Constant zero(0);
  request.network = &zero;
  EXPECT_EQ(mse_of(evaluate(request).rows), mse_of(found.rows));  // at length 5
}

TEST(Evaluate, RefusesAModelOfOtherShapes) {
  const Model model = model_for("sort", 6);
  for (const char* other : {"min-sum", "path"}) {
    EvaluationRequest request = request_for(model, {1});
    request.task = &find_task(other);
    try {
      evaluate(request);
      FAIL() << "accepted " << other;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_THAT(error.expected(), testing::HasSubstr(other));
    }
  }
}

}  // namespace
}  // namespace posattn
