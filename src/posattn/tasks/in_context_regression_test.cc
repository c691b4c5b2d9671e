// Samples by their statistics, and learners by what defines them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

using Numbers = std::vector<double>;

struct AskedRegression {
  std::string set = {};
  int d = 5, nodes = 11;
  int samples = 60;
  std::string axis = "c";
  double x = 1;
};

Dataset regression_samples(const AskedRegression& asked) {
  return make_dataset({.task = &find_task("in-context-regression", asked.set),
                       .length = asked.nodes,
                       .samples = asked.samples,
                       .range = training_range(2, false),
                       .seed = 9,
                       .purpose = Purpose::test_data,
                       .scale = asked.x,
                       .axis = asked.axis});
}

struct RegressionSample {
  std::vector<float> row;  // [nodes, d + 1]
  int d;
  float target;

  int examples() const { return static_cast<int>(row.size()) / (d + 1) - 1; }
  double x(int i, int k) const { return row[static_cast<size_t>((i + 1) * (d + 1) + k)]; }
  double y(int i) const { return x(i, d); }
  double answer(const Numbers& w, int i) const {
    double sum = 0;
    for (int k = 0; k < d; ++k) sum += w[k] * x(i, k);
    return sum;
  }
};

RegressionSample regression_sample(const Dataset& set, int64_t index) {
  const int64_t inputs = set.shape.input_count();
  const auto first = set.inputs.begin() + index * inputs;
  return {.row = {first, first + inputs},
          .d = set.shape.data_columns - 1,
          .target = set.targets[index * set.shape.real_nodes]};
}

double answered(const char* name, RegressionSample sample) {
  const std::vector<Baseline> all =
      find_task("in-context-regression", "d=" + std::to_string(sample.d)).baselines();
  std::vector<float> outputs(sample.examples() + 1);
  std::ranges::find(all, name, &Baseline::name)
      ->predict(sample.examples() + 1, {.values = sample.row, .tokens = {}}, outputs);
  return outputs[0];
}

// A linear learner's weights: its answers to the unit vectors.
Numbers weights_of(const char* name, RegressionSample sample) {
  Numbers weights;
  for (int k = 0; k < sample.d; ++k) {
    for (int j = 0; j < sample.d; ++j) sample.row[j] = j == k ? 1 : 0;
    weights.push_back(answered(name, sample));
  }
  return weights;
}

double mean_square_target(const AskedRegression& asked) {
  const Dataset set = regression_samples(asked);
  double sum = 0;
  for (int64_t s = 0; s < set.samples; ++s) {
    const double target = regression_sample(set, s).target;
    sum += target * target / static_cast<double>(set.samples);
  }
  return sum;
}

// E y^2 = E |w|^2 + sigma^2, and E |w|^2 = 1.
TEST(InContextRegression, TargetsHaveTheSizeOfTheirModel) {
  const struct {
    AskedRegression asked;
    double square, tolerance;
  } rows[] = {{{}, 1, 0.1},
              {{.set = "model=noisy"}, 1.25, 0.1},
              {{.set = "model=mixed"}, 1.13, 0.1},
              {{.set = "model=sparse,d=8", .d = 8}, 1, 0.15},
              {{.set = "model=logistic"}, 1, 1e-9},
              {{.axis = "c", .x = 10}, 100, 10},
              {{.axis = "x-scale", .x = 3}, 9, 1},
              {{.axis = "noise", .x = 2}, 5, 0.4}};
  for (auto [asked, square, tolerance] : rows) {
    asked.samples = 6000;
    asked.nodes = 2;
    EXPECT_NEAR(mean_square_target(asked), square, tolerance) << asked.set << asked.axis;
  }
}

TEST(InContextRegression, TheQueryFollowsFromTheExamples) {
  for (const char* set : {"", "model=sparse,d=8", "d=2"}) {
    const Dataset data = regression_samples({.set = set});
    for (int64_t s = 0; s < data.samples; ++s) {
      const RegressionSample sample = regression_sample(data, s);
      EXPECT_EQ(sample.row[sample.d], 0);  // no y at the query
      if (sample.examples() < sample.d) continue;
      EXPECT_NEAR(answered("least-squares", sample), sample.target, 2e-3);
      if (sample.d != 8) continue;
      const Numbers w = weights_of("least-squares", sample);
      EXPECT_EQ(std::ranges::count_if(w, [](double one) { return std::abs(one) > 1e-3; }), 3);
    }
  }
}

TEST(InContextRegression, LogisticAnswersAreSigns) {
  const Dataset data = regression_samples({.set = "model=logistic"});
  for (int64_t s = 0; s < data.samples; ++s) {
    const RegressionSample sample = regression_sample(data, s);
    for (int i = 0; i < sample.examples(); ++i) EXPECT_EQ(std::abs(sample.y(i)), 1);
    EXPECT_EQ(std::abs(sample.target), 1);
  }
}

TEST(InContextRegression, FewerExamplesLeaveNodesEmpty) {
  for (const int examples : {0, 3, 10}) {
    const Dataset data = regression_samples({.axis = "examples", .x = 1.0 * examples});
    for (int64_t s = 0; s < data.samples; ++s) {
      const RegressionSample sample = regression_sample(data, s);
      for (int i = 0; i < 10; ++i) EXPECT_EQ(sample.x(i, 0) != 0, i < examples);
      for (const char* name :
           {"least-squares", "ridge", "bayes-mixture", "lasso", "logistic", "averaging", "zero"}) {
        const double found = answered(name, sample);
        EXPECT_TRUE(std::isfinite(found)) << name;
        if (examples == 0) {
          EXPECT_EQ(found, 0) << name;
        }
      }
    }
  }
}

// Ridge: X^T (X w - y) + lambda w = 0. Least squares: the same with lambda = 0, and where examples
// are fewer than dimensions X w = y with w a sum of examples. Lasso: the slope of its loss is at
// most lambda, and lambda against the sign of a weight that is not 0.
TEST(InContextRegression, LearnersSolveTheirEquations) {
  for (const int nodes : {4, 11, 31}) {
    const Dataset data = regression_samples({.set = "model=noisy", .nodes = nodes, .samples = 20});
    for (int64_t s = 0; s < data.samples; ++s) {
      const RegressionSample sample = regression_sample(data, s);
      const int n = sample.examples();
      const Numbers ridge = weights_of("ridge", sample),
                    least = weights_of("least-squares", sample),
                    lasso = weights_of("lasso", sample);
      const auto slope = [&](const Numbers& w, int k) {
        double sum = 0;
        for (int i = 0; i < n; ++i) sum += sample.x(i, k) * (sample.answer(w, i) - sample.y(i));
        return sum;
      };
      double moments = 0;
      for (int k = 0; k < 5; ++k) {
        EXPECT_NEAR(slope(ridge, k) + 5 * 0.25 * ridge[k], 0, 1e-4);
        EXPECT_NEAR(slope(least, k), 0, 1e-3);
        EXPECT_LE(std::abs(slope(lasso, k)) / n, 0.01 + 1e-4);
        if (std::abs(lasso[k]) > 1e-5) {
          EXPECT_NEAR(slope(lasso, k) / n, std::copysign(0.01, -lasso[k]), 1e-4);
        }
        for (int i = 0; i < n; ++i) moments += sample.x(i, k) * sample.y(i) * sample.row[k] / n;
      }
      EXPECT_NEAR(answered("averaging", sample), moments, 1e-5);
      if (n >= 5) continue;
      // What is left of w after Gram and Schmidt.
      std::vector<Numbers> base;
      const auto reduced = [&](Numbers v) {
        for (const Numbers& one : base) {
          const double share = std::inner_product(v.begin(), v.end(), one.begin(), 0.0);
          for (int k = 0; k < 5; ++k) v[k] -= share * one[k];
        }
        return v;
      };
      for (int i = 0; i < n; ++i) {
        Numbers row(5);
        for (int k = 0; k < 5; ++k) row[k] = sample.x(i, k);
        row = reduced(row);
        const double norm = std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
        for (double& value : row) value /= norm;
        base.push_back(row);
      }
      for (const double rest : reduced(least)) EXPECT_NEAR(rest, 0, 1e-4);
    }
  }
}

// With one dimension: the mean over w and sigma by a sum over a fine grid.
TEST(InContextRegression, TheMixtureIsTheMeanOfThePosterior) {
  const Dataset data =
      regression_samples({.set = "model=mixed,d=1", .d = 1, .nodes = 6, .samples = 30});
  for (int64_t s = 0; s < data.samples; ++s) {
    const RegressionSample sample = regression_sample(data, s);
    double total = 0, mean = 0;
    for (const double sigma : {0.1, 0.5}) {
      for (double w = -6; w <= 6; w += 0.0005) {
        double log = -w * w / 2;
        for (int i = 0; i < 5; ++i) {
          const double error = (sample.y(i) - w * sample.x(i, 0)) / sigma;
          log -= error * error / 2 + std::log(sigma);
        }
        total += std::exp(log);
        mean += std::exp(log) * w;
      }
    }
    EXPECT_NEAR(answered("bayes-mixture", sample), mean / total * sample.row[0], 1e-4);
  }
}

// The same weights by plain gradient descent, whose steps are 1 over a bound on the Hessian.
TEST(InContextRegression, LogisticRegressionIsThatOfGradientDescent) {
  constexpr double lambda = 0.1;
  for (const int nodes : {3, 11, 21}) {
    const Dataset data =
        regression_samples({.set = "model=logistic", .nodes = nodes, .samples = 20});
    for (int64_t s = 0; s < data.samples; ++s) {
      RegressionSample sample = regression_sample(data, s);
      const int n = sample.examples();
      double bound = lambda;
      for (int i = 0; i < n; ++i) {
        for (int k = 0; k < 5; ++k) bound += sample.x(i, k) * sample.x(i, k) / 4;
      }
      Numbers w(5);
      for (int step = 0; step < 6000; ++step) {
        Numbers slope(5);
        for (int k = 0; k < 5; ++k) slope[k] = lambda * w[k];
        for (int i = 0; i < n; ++i) {
          const double share = 1 / (1 + std::exp(sample.y(i) * sample.answer(w, i)));
          for (int k = 0; k < 5; ++k) slope[k] -= share * sample.y(i) * sample.x(i, k);
        }
        for (int k = 0; k < 5; ++k) w[k] -= slope[k] / bound;
      }
      const double chance = 1 / (1 + std::exp(-sample.answer(w, -1)));
      EXPECT_NEAR(answered("logistic", sample), chance - (1 - chance), 1e-6);
      for (int i = 0; i < n; ++i) sample.row[(i + 1) * 6 + 5] *= 10;  // y in {-10, 10}
      EXPECT_NEAR(answered("logistic", sample), 10 * (chance - (1 - chance)), 1e-5);
    }
  }
}

// With one dimension and examples on one side: the weight where lambda w = n x / (1 + exp(w x)).
TEST(InContextRegression, LogisticRegressionOfEqualExamples) {
  RegressionSample sample{.row = {1, 0}, .d = 1, .target = 1};
  for (int i = 0; i < 4; ++i) sample.row.insert(sample.row.end(), {2, -1});
  double low = 0, high = 50;  // of -w
  for (int halving = 0; halving < 60; ++halving) {
    const double w = (low + high) / 2;
    (0.1 * w < 4 * 2 / (1 + std::exp(2 * w)) ? low : high) = w;
  }
  EXPECT_NEAR(answered("logistic", sample), -std::tanh(low / 2), 1e-6);
}

// Of the learners it has the smallest mean squared error on signs.
TEST(InContextRegression, LogisticRegressionIsTheBestOnSigns) {
  for (const int nodes : {6, 11, 21}) {
    const Dataset data =
        regression_samples({.set = "model=logistic", .nodes = nodes, .samples = 1000});
    const auto error = [&](const char* name) {
      double sum = 0;
      for (int64_t s = 0; s < data.samples; ++s) {
        const RegressionSample sample = regression_sample(data, s);
        sum += std::pow(answered(name, sample) - sample.target, 2) / 1000;
      }
      return sum;
    };
    for (const char* other : {"least-squares", "ridge", "lasso", "averaging", "zero"}) {
      EXPECT_LT(error("logistic"), error(other)) << other << ' ' << nodes;
    }
  }
}

TEST(InContextRegression, TheBestLearnerOfTheModelComesFirst) {
  for (const auto& [model, name] : {std::pair{"linear", "least-squares"},
                                    {"noisy", "ridge"},
                                    {"mixed", "bayes-mixture"},
                                    {"sparse", "lasso"},
                                    {"logistic", "logistic"}}) {
    const std::vector<Baseline> all =
        find_task("in-context-regression", std::string("model=") + model).baselines();
    EXPECT_EQ(all.size(), 7u);
    EXPECT_EQ(all[0].name, name);
  }
}

TEST(InContextRegression, AnswersToGivenNumbersAreThoseOfTheBestLearner) {
  const Dataset data = regression_samples({});
  const RegressionSample sample = regression_sample(data, 0);
  std::vector<float> target(11, 7);
  find_task("in-context-regression").solve(11, sample.row, target);
  EXPECT_EQ(target[0], static_cast<float>(answered("least-squares", sample)));
  EXPECT_EQ(std::ranges::count(target, 0), 10);
}

// Recorded runs were trained and tested on such samples.
TEST(InContextRegression, GoldenSamples) {
  for (const auto& [set, target] : {std::pair{"", 1.960148},
                                    {"model=noisy", 1.915575},
                                    {"model=mixed", 0.135547},
                                    {"model=sparse", 1.432271},
                                    {"model=logistic", 1.0}}) {
    EXPECT_NEAR(regression_samples({.set = set}).targets[0], target, 1e-6) << set;
  }
}

TEST(InContextRegression, RefusesPlacesOffItsAxes) {
  for (const double x : {-1.0, 11.0, 2.5}) {
    EXPECT_THROW(regression_samples({.axis = "examples", .x = x}), Error);
  }
}

}  // namespace
}  // namespace posattn
