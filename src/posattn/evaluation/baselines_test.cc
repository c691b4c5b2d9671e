
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/evaluation/evaluate.h"

namespace posattn {
namespace {

// A network that answers 0.
Model silent_model(const Task& task) {
  const TaskShape shape = task.shape(8);
  ModelSpec spec;
  spec.real_nodes = shape.real_nodes;
  spec.vocabulary = shape.vocabulary;
  spec.read_nodes = shape.read_nodes;
  spec.width = spec.mlp_width = 4;
  spec.depth = 1;
  spec = resolve(spec);
  return {.spec = spec,
          .parameters = Parameters<float>(spec),
          .origin = {.task = std::string(task.name()),
                     .length = 8,
                     .variable_length = false,
                     .range = 5,
                     .integers = false,
                     .notes = {}}};
}

TEST(Baselines, AreMeasuredOnTheSamplesOfTheModel) {
  const Task& task = find_task("mixed-min");
  const Model model = silent_model(task);
  EvaluationRequest request{.model = &model, .task = &task, .values = {1, 10}, .samples = 5000};
  const std::vector<Measurement> alone = evaluate(request).rows;
  EXPECT_TRUE(evaluate(request).baselines.empty());
  request.baselines = true;
  const Evaluation evaluation = evaluate(request);
  EXPECT_EQ(evaluation.rows, alone);
  ASSERT_EQ(evaluation.baselines.size(), 2u);
  for (const double c : {1.0, 10.0}) {
    const auto error_of = [&](const std::vector<Measurement>& rows, const char* metric) {
      return find_value(rows, {.axis = "c", .x = c, .metric = metric}).value();
    };
    const std::vector<Measurement>& blind = evaluation.baselines[0].rows;
    EXPECT_NEAR(error_of(blind, "mse_over_c2"), 0.0113, 0.002);
    EXPECT_LT(error_of(blind, "mse"), error_of(evaluation.rows, "mse"));
    EXPECT_EQ(error_of(evaluation.baselines[1].rows, "mse"), 0);
    EXPECT_EQ(error_of(evaluation.baselines[1].rows, "accuracy"), 1);
    const TestSamples tests = request.axis->samples(request, c);
    EXPECT_THAT(blind, testing::IsSupersetOf(
                           baseline_rows(find_baseline(task, "query-blind"), task, tests, "c", c)));
  }
}

TEST(Baselines, UnknownOnesAreRefusedWithThoseThatThereAre) {
  try {
    find_baseline(find_task("mixed-min"), "blind");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(error.problem(), "unknown baseline of task mixed-min 'blind'");
    EXPECT_THAT(error.expected(), testing::HasSubstr("query-blind"));
  }
  EXPECT_THROW(find_baseline(find_task("sort"), "oracle"), Error);
}

}  // namespace
}  // namespace posattn
