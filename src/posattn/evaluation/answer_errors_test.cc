#include <gtest/gtest.h>

#include <cmath>

#include "posattn/evaluation/evaluate.h"
#include "posattn/evaluation/measure.h"

namespace posattn {
namespace {

// Writes the same token without an end.
Model model_that_writes(const Task& task, int length, int32_t token) {
  const TaskShape shape = task.shape(length);
  ModelSpec spec;
  spec.real_nodes = shape.real_nodes;
  spec.scratch_nodes = 0;
  spec.data_columns = 0;
  spec.vocabulary = spec.output_columns = shape.vocabulary;
  spec.width = spec.mlp_width = 4;
  spec.depth = 1;
  spec.causal = true;
  spec.loss = Loss::cross_entropy;
  spec = resolve(spec);
  Model model{spec, Parameters<float>(spec), {}};
  model.origin.task = task.name();
  model.origin.length = length;
  model.parameters["decoding.bias"][token] = 1;
  return model;
}

TEST(AnswerErrors, OverTheAnswersThatAreNumbers) {
  const Task& task = find_task("mixed-min-written");
  const WrittenAnswers& written = *task.written_answers();
  const Dataset set = make_dataset({.task = &task,
                                    .length = 4,
                                    .samples = 20,
                                    .range = training_range(5, false),
                                    .seed = 1,
                                    .purpose = Purpose::test_data});
  const Model fives = model_that_writes(task, 4, '5');
  const AnswerErrors errors =
      answer_errors(TextGenerator(fives.spec, fives.parameters), written, set, 2);
  const double answer = std::stod(std::string(written.longest_answer(), '5'));
  double expected = 0;
  for (int64_t s = 0; s < set.samples; ++s) {
    const int nodes = set.shape.real_nodes;
    expected += std::pow(
        answer - written.answer(std::span<const int32_t>(set.tokens).subspan(s * nodes, nodes)), 2);
  }
  EXPECT_DOUBLE_EQ(errors.squared.mean(), expected / 20);
  EXPECT_EQ(errors.unparsable.mean(), 0);

  for (const int32_t token : {int32_t{'x'}, written.tokeniser().end()}) {
    const Model other = model_that_writes(task, 4, token);
    const AnswerErrors none =
        answer_errors(TextGenerator(other.spec, other.parameters), written, set, 1);
    EXPECT_EQ(none.unparsable.mean(), 1);
    EXPECT_EQ(none.squared.count, 0);
  }
}

TEST(AnswerErrors, AreWhatATestOfSuchATaskMeasures) {
  const Task& task = find_task("mixed-sum-written");
  Model model = model_that_writes(task, 4, '1');
  model.origin.range = 5;
  const Evaluation evaluation =
      evaluate({.model = &model, .task = &task, .values = {1, 2}, .samples = 10});
  ASSERT_EQ(evaluation.rows.size(), 4U);
  EXPECT_EQ(evaluation.rows[0].metric, "answer_mse");
  EXPECT_GT(evaluation.rows[2].value, 0);
  EXPECT_EQ(evaluation.rows[3].metric, "unparsable");
  EXPECT_EQ(evaluation.rows[3].value, 0);
  EXPECT_EQ(evaluation.rows[3].x, 2);
}

}  // namespace
}  // namespace posattn
