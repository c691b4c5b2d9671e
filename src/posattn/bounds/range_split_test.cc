#include "posattn/bounds/range_split.h"

#include <gmock/gmock.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/evaluation/evaluate.h"
#include "posattn/evaluation/model_for_test.h"
#include "posattn/model/spec/random_spec_test.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"

namespace posattn::bounds {
namespace {

using posattn::testing::random_parameters;

Model random_model(const char* task, int length, bool variable_length = false) {
  Model model = model_for(task, length, variable_length);
  model.parameters = random_parameters(model.spec, 4);
  return model;
}

RangeSplit split(const Model& model, std::vector<double> scales) {
  return split_range({.model = &model,
                      .task = &find_task(model.origin.task),
                      .scales = std::move(scales),
                      .samples = 200});
}

TEST(ScaledAnswers, OfWhichTasks) {
  std::vector<std::string> scale;
  for (const Task* task : tasks()) {
    const int length = std::max(4, task->shortest_length());
    if (task->shape(length).vocabulary > 0) continue;
    const Dataset set = make_dataset({.task = task, .length = length, .samples = 50, .range = {}});
    if (answers_scale(*task, set)) scale.emplace_back(task->name());
  }
  EXPECT_THAT(scale, ::testing::UnorderedElementsAre(
                         "cumulative-sum", "cumulative-min", "cumulative-max", "cumulative-median",
                         "cumulative-max-subarray", "sort", "min-sum", "path", "neighbour-min",
                         "neighbour-sum", "neighbour-mean", "sparse-average", "stream-sum",
                         "stream-mean", "stream-min"));
}

TEST(ScaledAnswers, OfWhichTasksWithTokens) {
  std::vector<std::string> scale;
  for (const Task* task : tasks()) {
    const int length = std::max(4, task->shortest_length());
    if (task->shape(length).vocabulary == 0 || task->loss() != Loss::squared_error) continue;
    const Dataset set = make_dataset({.task = task, .length = length, .samples = 50, .range = {}});
    if (answers_scale(*task, set)) scale.emplace_back(task->name());
  }
  EXPECT_THAT(scale, ::testing::UnorderedElementsAre(
                         "contextual-sum", "recall", "asked-min", "asked-sum", "asked-operation",
                         "sort-by-key", "pointer", "mixed-min", "mixed-sum", "mixed-multitask"));
}

// f(s, c x) = c f(s, x), with the tokens as they are, and nothing comes from biases.
TEST(RangeSplit, TokensStayAsTheyAre) {
  for (const char* name : {"recall", "mixed-min"}) {
    for (const char* preset : {"two-streams", "two-streams-gated", "standard"}) {
      Model model = model_for(name, 5);
      model.spec.scratch_nodes = model.spec.encoding_size = 0;
      model.spec.value_width = std::string(preset) == "standard" ? 0 : 8;
      apply_preset(preset, model.spec);
      if (model.spec.value_width == 0) model.spec.wrap = Wrap::scale;
      model.spec = resolve(model.spec);
      model.parameters = random_parameters(model.spec, 4);
      const RangeSplit found = split(model, {1, 3, 1024});
      EXPECT_FALSE(found.cooled);
      EXPECT_LT(found.deviation, 1e-5) << name << preset;
      const double inside = found.points[0].error;
      EXPECT_GT(inside, 0);
      EXPECT_NEAR(found.points[1].error, 9 * inside, 1e-4 * inside);
      EXPECT_NEAR(found.points[2].measured, 1048576 * inside, 1048576e-5 * inside);
      EXPECT_EQ(found.points[1].from_biases, 0);
    }
  }
}

// Of a task whose numbers grow with the range, and its answers do not.
TEST(ScaledAnswers, NotOfTokensWithAConstant) {
  class Named final : public Task {
    std::string_view name() const override { return "named"; }
    std::string_view description() const override { return "x + token"; }
    TaskShape shape(int length) const override {
      return {.real_nodes = length, .vocabulary = 2, .tokens_and_values = true};
    }
    void make_sample(RandomStream& random, const Sampling& sampling, int /*length*/,
                     const SampleRoom& room) const override {
      draw_values(random, sampling.range, room.values);
      for (size_t i = 0; i < room.tokens.size(); ++i) {
        room.tokens[i] = static_cast<int32_t>(random.below(2));
        room.targets[i] = room.values[i] + static_cast<float>(room.tokens[i]);
      }
    }
  };
  const Named task;
  EXPECT_FALSE(
      answers_scale(task, make_dataset({.task = &task, .length = 3, .samples = 9, .range = {}})));
}

TEST(ScaledAnswers, NotOfATaskWithAConstant) {
  class PlusOne final : public Task {
    std::string_view name() const override { return "plus-one"; }
    std::string_view description() const override { return "x + 1"; }
    void solve(int length, std::span<const float> x, std::span<float> y) const override {
      for (int i = 0; i < length; ++i) y[i] = x[i] + 1;
    }
  };
  const PlusOne task;
  const Dataset set = make_dataset({.task = &task, .length = 3, .samples = 5, .range = {}});
  EXPECT_FALSE(answers_scale(task, set));
  Model model = random_model("sort", 3);
  EXPECT_THROW(split_range({.model = &model, .task = &task}), Error);
}

// The error itself, on inputs that were scaled and solved.
double error_at(const Model& model, double c) {
  const Task& task = find_task(model.origin.task);
  const EvaluationRequest request{.model = &model, .task = &task, .samples = 200};
  double sum = 0, count = 0;
  for (const Dataset& set : request.axis->samples(request, 1).sets) {
    std::vector<double> x(set.inputs.begin(), set.inputs.end());
    for (double& value : x) value *= c;
    const std::vector<double> outputs = reference_forward(
        model.spec, to_double(model.parameters),
        {.inputs = x, .samples = set.samples, .real_nodes = set.shape.real_nodes});
    for (size_t i = 0; i < outputs.size(); ++i) {
      sum += std::pow(outputs[i] - c * set.targets[i], 2);
      ++count;
    }
  }
  return sum / count;
}

TEST(RangeSplit, IsTheErrorOnScaledInputs) {
  for (const bool variable_length : {false, true}) {
    const Model model = random_model("cumulative-median", 4, variable_length);
    const RangeSplit found = split(model, {1, 3, 250});
    EXPECT_LT(found.deviation, 1e-5);
    for (const RangePoint& point : found.points) {
      if (!variable_length) {
        EXPECT_NEAR(point.error, error_at(model, point.c), 1e-4 * point.error);
      }
      EXPECT_DOUBLE_EQ(point.from_weights, point.c * point.c * found.without_biases);
      EXPECT_NEAR(point.from_weights + point.from_biases, point.error, 1e-12 * point.error);
      // The triangle inequality between the three.
      EXPECT_LE(std::abs(std::sqrt(point.error) - std::sqrt(point.from_weights)),
                point.bias_output * 1.001);
    }
  }
}

TEST(RangeSplit, AtOneIsWhatEvaluateSays) {
  const Model model = random_model("sort", 5);
  const Evaluation evaluation =
      evaluate({.model = &model, .task = &find_task("sort"), .samples = 200});
  const double mse = find_value(evaluation.rows, {.axis = "c", .x = 1, .metric = "mse"}).value();
  EXPECT_NEAR(split(model, {1}).points[0].error, mse, 1e-6 * mse);
}

// `evaluate` leaves out what lies inside the training range. A pair (a, b) of [-2c, 2c] does so
// with probability 1 / c^2, and is then one of c = 1: of scaled samples' error M and its error V,
//   M(c) = (1 - 1/c^2) V(c) + M(1) / c^2.
TEST(RangeSplit, TellsWhatEvaluateSaysOutside) {
  Model model = random_model("cumulative-min", 3);
  for (const Biases biases : {Biases::all, Biases::none}) {
    model.spec.biases = biases;
    model.parameters = random_parameters(model.spec, 4);
    const Task& task = find_task(model.origin.task);
    const auto points =
        split_range({.model = &model, .task = &task, .scales = {1, 2}, .samples = 10000}).points;
    const Evaluation evaluation =
        evaluate({.model = &model, .task = &task, .values = {2}, .samples = 10000});
    const double v = find_value(evaluation.rows, {.axis = "c", .x = 2, .metric = "mse"}).value();
    EXPECT_NEAR(v, (4 * points[1].error - points[0].error) / 3, 0.04 * v);
    if (biases == Biases::none) {
      EXPECT_NEAR(v, 5 * points[0].error, 0.04 * v);
    }
  }
}

// f_b(c x) - f_0(c x) is affine in 1/c once no ReLU changes its side: the outputs that biases add
// tend to a limit, and the error to c^2 times that of the weights.
TEST(RangeSplit, BiasesAddABoundedOutput) {
  const RangeSplit found = split(random_model("cumulative-sum", 4), {1, 100, 1e4, 1e5});
  const auto& points = found.points;
  EXPECT_NEAR(points[2].bias_output, points[1].bias_output, 0.05 * points[1].bias_output);
  EXPECT_LT(points[1].bias_output, 10 * points[0].bias_output);
  EXPECT_LT(std::abs(points[3].from_biases), 1e-3 * points[3].error);
}

TEST(RangeSplit, WithoutBiasesEverythingComesFromTheWeights) {
  Model model = model_for("cumulative-min", 4);
  model.spec.biases = Biases::none;
  model.parameters = random_parameters(model.spec, 6);
  for (const RangePoint& point : split(model, {1, 10, 1000}).points) {
    EXPECT_EQ(point.from_biases, 0);
    EXPECT_EQ(point.bias_output, 0);
    EXPECT_GT(point.error, 0);
  }
}

TEST(RangeSplit, CompiledProgramsAreExactAtEveryScale) {
  for (const char* name : {"cumulative-sum", "cumulative-min", "cumulative-median", "sort",
                           "cumulative-max-subarray"}) {
    Model model = compile(library_program(name, 6));
    const RangeSplit found = split(model, {1, 3, 1000});
    EXPECT_LT(found.deviation, 1e-6) << name;
    for (const RangePoint& point : found.points) {
      EXPECT_LT(point.error, 1e-12 * point.c * point.c) << name;
      EXPECT_EQ(point.from_biases, 0) << name;
    }
  }
}

// What `evaluate` finds is what follows from the error, within the noise of its samples; and the
// error of the identity is that on c x.
TEST(RangeSplit, PredictsWhatEvaluateFinds) {
  Model model = random_model("cumulative-min", 3);
  for (const char* preset : {"positional", "homogeneous", "m2", "standard"}) {
    apply_preset(preset, model.spec);
    model.spec.wrap = model.spec.positions_in_input ? Wrap::scale : Wrap::none;
    model.spec = resolve(model.spec);
    model.parameters = random_parameters(model.spec, 4);
    const Task& task = find_task(model.origin.task);
    const RangeSplit found =
        split_range({.model = &model, .task = &task, .scales = {0.5, 1, 2, 5}, .samples = 10000});
    EXPECT_EQ(found.cooled, std::string(preset) == "m2");
    EXPECT_LT(found.deviation, 1e-5) << preset;
    for (const RangePoint& point : found.points) {
      EXPECT_NEAR(point.measured, point.error, 1e-4 * point.error) << preset;
      EXPECT_NEAR(point.tested, point.predicted, 0.05 * point.predicted) << preset;
    }
    if (found.points[1].bias_output == 0) {  // homogeneous
      const double inside = found.points[1].error;
      EXPECT_NEAR(found.points[2].predicted, 5 * inside, 1e-4 * inside);
      EXPECT_NEAR(found.points[3].predicted, 26 * inside, 1e-3 * inside);
    }
  }
}

// Scores grow as c^2, so attention tends to what reads the largest.
TEST(RangeSplit, CooledAttentionHasALimit) {
  Model model = random_model("sort", 4);
  apply_preset("m2", model.spec);
  model.parameters = random_parameters(model.spec, 4);
  const RangeSplit found = split(model, {1, 1e5});
  const auto distance = [&](size_t point) {
    const auto& at = found.points[point];
    return std::abs(at.error / (at.c * at.c) / found.without_biases - 1);
  };
  EXPECT_GT(distance(0), 0.01);
  EXPECT_LT(distance(1), 0.1 * distance(0));
}

TEST(RangeSplit, RefusesModelsThatDoNotScale) {
  Model model = random_model("sort", 4);
  model.spec.activation = Activation::gelu;
  EXPECT_THROW(split(model, {1}), Error);
  EXPECT_THROW(split(random_model("recall", 4), {1}), Error);  // one stream adds tokens to values
  Model other = random_model("sort", 4);
  other.origin.task = "min-sum";  // another number of nodes
  EXPECT_THROW(split(other, {1}), Error);
}

}  // namespace
}  // namespace posattn::bounds
