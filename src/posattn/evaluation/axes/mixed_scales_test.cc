#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/evaluation/evaluate.h"
#include "posattn/evaluation/model_for_test.h"

namespace posattn {
namespace {

Dataset samples_at(const char* task, double x, int64_t samples, bool integers = false) {
  Model model = model_for("sort", 4);
  model.origin.integers = integers;
  const EvaluationAxis axis = axis_named("mixed-scales");
  const EvaluationRequest request{
      .model = &model, .task = &find_task(task), .axis = &axis, .samples = samples};
  return std::move(axis.samples(request, x).sets.at(0));
}

// The law: v_i from the training range, then 10^u_i. So |x_i| <= 2 * 10^x, and the mean of x_i^2
// is that of training times the mean of 10^2u, sinh(2 x ln 10) / (2 x ln 10).
TEST(MixedScales, FollowsItsLaw) {
  const auto square = [](const Dataset& set) {
    double sum = 0;
    for (const double value : set.inputs)
      sum += value * value / static_cast<double>(set.inputs.size());
    return sum;
  };
  const double plain = square(samples_at("sort", 0, 20000));
  EXPECT_NEAR(plain, 8.0 / 9, 0.02);  // E (a^2 + ab + b^2) / 3, a and b uniform in [-2, 2]
  for (const double x : {0.5, 1.0}) {
    const Dataset set = samples_at("sort", x, 20000);
    const double arc = 2 * x * std::log(10.0);
    EXPECT_NEAR(square(set) / plain, std::sinh(arc) / arc, 0.05 * std::sinh(arc) / arc);
    for (const float value : set.inputs) EXPECT_LE(std::abs(value), 2.001 * std::pow(10, x));
  }
}

TEST(MixedScales, KeepsTheExactAnswerAndTheShapeOfASample) {
  for (const char* name : {"sort", "cumulative-median", "path"}) {
    const Task& task = find_task(name);
    const Dataset set = samples_at(name, 2, 20);
    const auto in = static_cast<size_t>(set.shape.input_count()),
               out = static_cast<size_t>(set.shape.target_count());
    for (size_t s = 0; s < 20; ++s) {
      const std::span<const float> x = std::span(set.inputs).subspan(s * in, in);
      std::vector<float> answer(out);
      task.solve(set.length, x, answer);
      EXPECT_THAT(std::span(set.targets).subspan(s * out, out),
                  ::testing::ElementsAreArray(answer));
      for (size_t i = 0; i < 4 && in == 16; ++i) {  // a path's matrix stays symmetric
        for (size_t j = 0; j < 4; ++j) EXPECT_EQ(x[4 * i + j], x[4 * j + i]);
      }
    }
  }
}

TEST(MixedScales, AtZeroItIsTheTestAtOne) {
  const Model model = model_for("sort", 4);
  const AxisValues tests = parse_axis_values("mixed-scales=0,1", "--axis");
  const Evaluation evaluation = evaluate({.model = &model,
                                          .task = &find_task("sort"),
                                          .axis = &tests.axis,
                                          .values = tests.values,
                                          .samples = 4000});
  const Evaluation inside =
      evaluate({.model = &model, .task = &find_task("sort"), .samples = 4000});
  const auto error = [](const Evaluation& found, const char* axis, double x) {
    return *find_value(found.rows, {.axis = axis, .x = x, .metric = "mse"});
  };
  EXPECT_NEAR(error(evaluation, "mixed-scales", 0) / error(inside, "c", 1), 1, 0.1);
  EXPECT_GT(error(evaluation, "mixed-scales", 1), 3 * error(inside, "c", 1));
}

TEST(MixedScales, RefusesWhatHasNoMagnitudes) {
  EXPECT_THROW(samples_at("sort", 1, 5, true), Error);  // whole numbers
  EXPECT_THROW(samples_at("sort", -1, 5), Error);
  EXPECT_THROW(samples_at("sort", 20, 5), Error);
  EXPECT_THROW(samples_at("k-hop", 1, 5), Error);  // tokens
  class Constant final : public Task {             // a draw that does not ask for the range
    std::string_view name() const override { return "constant"; }
    std::string_view description() const override { return "ones"; }
    void draw(RandomStream&, const ValueRange&, int, std::span<float> input) const override {
      std::ranges::fill(input, 1.0f);
    }
    void solve(int, std::span<const float> x, std::span<float> y) const override {
      std::ranges::copy(x, y.begin());
    }
  };
  EXPECT_THROW(check_mixed_scales(Constant(), 3), Error);
  EXPECT_NO_THROW(check_mixed_scales(find_task("min-sum"), 3));
}

}  // namespace
}  // namespace posattn
