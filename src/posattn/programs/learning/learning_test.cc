#include "posattn/programs/learning/learning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/evaluation/predict.h"
#include "posattn/model/blocks/reference_network.h"
#include "posattn/programs/learning/check.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;
using Vector = std::vector<double>;

LearningProgram program_of(const char* name, int nodes, const Settings& settings) {
  return {*find_learning_algorithm(name), nodes, settings};
}

std::vector<float> drawn_sample(const LearningProgram& program, uint32_t number, double c = 1) {
  RandomStream random(3, Purpose::test_data, 0, number);
  std::vector<float> sample(program.nodes() * program.columns());
  draw_regression(random, program.whole("d"), c, sample);
  return sample;
}

float in_float(const LearningProgram& program, const std::vector<float>& sample) {
  return predict_rows(compile(program), sample, 1).front();
}

double in_double(const LearningProgram& program, const std::vector<float>& sample) {
  const TokenNetwork network = program.network();
  const Vector wide(sample.begin(), sample.end());
  return reference_forward(spec_of(network), weights_of<double>(network),
                           {.inputs = wide, .samples = 1, .real_nodes = program.nodes()})
      .front();
}

// The moments of examples first .. last - 1: least squares knows them alone.
struct Moments {
  Moments(const std::vector<float>& sample, int dimensions, int first, int last)
      : d(dimensions), gram(d * d), cross(d) {
    for (int i = first; i < last; ++i) {
      const float* node = &sample[i * (d + 1)];
      for (int a = 0; a < d; ++a) {
        cross[a] += static_cast<double>(node[a]) * node[d] / (last - first);
        for (int b = 0; b < d; ++b) {
          gram[a * d + b] += static_cast<double>(node[a]) * node[b] / (last - first);
        }
      }
    }
  }
  int d;
  Vector gram, cross;
};

double shrunk(double w, double theta) { return w > theta ? w - theta : w < -theta ? w + theta : 0; }

// w <- S(w - rate ((G + ridge I) w - b)), S towards zero by theta
Vector descended(const Moments& m, int steps, double rate, double ridge, double theta = 0) {
  Vector w(m.d);
  for (int t = 0; t < steps; ++t) {
    Vector next(m.d);
    for (int a = 0; a < m.d; ++a) {
      double slope = ridge * w[a] - m.cross[a];
      for (int b = 0; b < m.d; ++b) slope += m.gram[a * m.d + b] * w[b];
      next[a] = shrunk(w[a] - rate * slope, theta);
    }
    w = next;
  }
  return w;
}

// (G + ridge I) w = b by Gauss and Jordan.
Vector solved(Moments m, double ridge) {
  for (int a = 0; a < m.d; ++a) m.gram[a * m.d + a] += ridge;
  for (int p = 0; p < m.d; ++p) {
    for (int r = 0; r < m.d; ++r) {
      if (r == p) continue;
      const double factor = m.gram[r * m.d + p] / m.gram[p * m.d + p];
      for (int c = 0; c < m.d; ++c) m.gram[r * m.d + c] -= factor * m.gram[p * m.d + c];
      m.cross[r] -= factor * m.cross[p];
    }
  }
  for (int a = 0; a < m.d; ++a) m.cross[a] /= m.gram[a * m.d + a];
  return m.cross;
}

double at_query(const Vector& w, const std::vector<float>& sample) {
  return std::inner_product(w.begin(), w.end(), sample.begin(), 0.0);
}

double size_of(const Vector& w, const std::vector<float>& sample) {
  double ww = 0, xx = 0;
  for (size_t k = 0; k < w.size(); ++k) {
    ww += w[k] * w[k];
    xx += static_cast<double>(sample[k]) * sample[k];
  }
  return std::sqrt(ww * xx);
}

void expect_answer(const LearningProgram& program, const std::vector<float>& sample,
                   const Vector& w) {
  const double expected = at_query(w, sample), size = size_of(w, sample);
  EXPECT_NEAR(in_double(program, sample), expected, 1e-13 * size);
  EXPECT_NEAR(in_float(program, sample), expected, 1e-6 * size);
  const Vector wide(sample.begin(), sample.end());
  EXPECT_NEAR(program.learn(wide).answer, expected, 1e-13 * size);
}

TEST(Learning, RidgeIsGradientDescent) {
  for (const int d : {1, 2, 5, 8}) {
    for (const int examples : {1, 3, 12}) {
      SCOPED_TRACE(std::to_string(d) + " dimensions, " + std::to_string(examples) + " examples");
      const LearningProgram program =
          program_of("in-context-ridge", examples + 1,
                     {{"d", d}, {"steps", 15}, {"rate", 0.05}, {"lambda", d == 2 ? 0.0 : 0.3}});
      const std::vector<float> sample = drawn_sample(program, d * 100 + examples);
      const Moments moments(sample, d, 1, examples + 1);
      expect_answer(program, sample, descended(moments, 15, 0.05, program["lambda"]));
    }
  }
}

TEST(Learning, ManyStepsReachTheClosedForm) {
  const LearningProgram program =
      program_of("in-context-ridge", 21, {{"d", 4}, {"steps", 300}, {"lambda", 0.5}});
  const std::vector<float> sample = drawn_sample(program, 1);
  const Vector w = solved(Moments(sample, 4, 1, 21), 0.5);
  EXPECT_NEAR(in_double(program, sample), at_query(w, sample), 1e-12 * size_of(w, sample));
  const LearningProgram few =
      program_of("in-context-ridge", 21, {{"d", 4}, {"steps", 3}, {"lambda", 0.5}});
  EXPECT_GT(std::abs(in_double(few, sample) - at_query(w, sample)), 1e-3 * size_of(w, sample));
}

TEST(Learning, RidgeScalesWithYExactly) {
  const LearningProgram program = program_of("in-context-ridge", 11, {});
  const std::vector<float> sample = drawn_sample(program, 2);
  const float once = in_float(program, sample);
  for (const float c : {0.25F, 8.0F, 0x1p40F}) {  // powers of two: to the last bit
    std::vector<float> scaled = sample;
    for (size_t k = 5; k < scaled.size(); k += 6) scaled[k] *= c;
    EXPECT_EQ(in_float(program, scaled), c * once);
  }
}

TEST(Learning, LassoIsTheProximalIteration) {
  int zeros = 0;
  for (uint32_t number = 0; number < 6; ++number) {
    const LearningProgram program = program_of(
        "in-context-lasso", 13, {{"d", 6}, {"steps", 25}, {"rate", 0.1}, {"lambda", 0.2}});
    const std::vector<float> sample = drawn_sample(program, number);
    const Vector w = descended(Moments(sample, 6, 1, 13), 25, 0.1, 0, 0.1 * 0.2);
    zeros += static_cast<int>(std::ranges::count(w, 0.0));
    expect_answer(program, sample, w);
  }
  EXPECT_GT(zeros, 3);
}

TEST(Learning, SelectsByValidationThenPredicts) {
  int first = 0, second = 0, between = 0;
  for (uint32_t number = 0; number < 24; ++number) {
    const double margin = number % 2 == 0 ? 1e-5 : 0.5;
    const LearningProgram program = program_of("in-context-select", 17,
                                               {{"d", 3},
                                                {"steps", 12},
                                                {"lambda1", 0.01},
                                                {"lambda2", 0.6},
                                                {"validation", 5},
                                                {"margin", margin}});
    const std::vector<float> sample = drawn_sample(program, 50 + number);
    const Moments training(sample, 3, 1, 12);
    const Vector w[] = {descended(training, 12, 0.2, 0.01), descended(training, 12, 0.2, 0.6)};
    double losses[2] = {};
    for (int k = 0; k < 2; ++k) {
      for (int i = 12; i < 17; ++i) {
        const double guess = std::inner_product(w[k].begin(), w[k].end(), &sample[i * 4], 0.0);
        losses[k] += std::pow(guess - sample[i * 4 + 3], 2) / 5;
      }
    }
    const double share = std::clamp((losses[0] - losses[1]) / margin, 0.0, 1.0);
    ++(share == 0 ? first : share == 1 ? second : between);
    const double size = std::max(size_of(w[0], sample), size_of(w[1], sample));
    const double expected = (1 - share) * at_query(w[0], sample) + share * at_query(w[1], sample);
    EXPECT_NEAR(in_double(program, sample), expected, 1e-11 * size);
    EXPECT_NEAR(in_float(program, sample), expected, 2e-6 * size);
  }
  EXPECT_GT(first, 1);
  EXPECT_GT(second, 1);
  EXPECT_GT(between, 1);
}

TEST(Learning, AModelIsVerifiedAgainstItsAlgorithm) {
  for (const LearningAlgorithm& algorithm : learning_algorithms()) {
    SCOPED_TRACE(algorithm.name);
    const Model written = compile(LearningProgram(algorithm, 13, {{"d", 3}, {"steps", 8}}));
    EXPECT_EQ(written.origin.task, "in-context-regression");
    EXPECT_EQ(written.origin.task_set, "d=3");
    const Model model = model_from_bytes(model_bytes(written), "model.safetensors");
    EXPECT_EQ(model.spec.data_columns, 4);
    EXPECT_EQ(model.spec.real_nodes, 13);
    EXPECT_EQ(model.spec.nodes_read(13), 1);
    EXPECT_TRUE(is_learning(model));
    const LearningProgram program = carried_learning(model, "model.safetensors");
    LearningRequest request{.model = &model, .program = &program, .samples = 60};
    EXPECT_TRUE(verify(request).holds());
    request.in_double = true;
    EXPECT_TRUE(verify(request).holds());

    Model changed = model;
    changed.parameters["transformer_layers.2.attn.v_proj.weight"][0] *= 1.1F;
    request = {.model = &changed, .program = &program, .samples = 60};
    const LearningVerification found = verify(request);
    EXPECT_FALSE(found.holds());
    EXPECT_TRUE(found.wrong.has_value());
    EXPECT_THAT(found.other_weights, HasSubstr("1 number of"));
  }
}

TEST(Learning, RefusesWhatItDoesNotKnow) {
  const auto message = [](const auto& run) {
    try {
      run();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message([] { program_of("in-context-ridge", 1, {}); }), HasSubstr("2 to 4096"));
  EXPECT_THAT(message([] { program_of("in-context-select", 2, {}); }), HasSubstr("3 to 4096"));
  EXPECT_THAT(message([] { program_of("in-context-ridge", 8, {{"d", 0}}); }), HasSubstr("1 to 64"));
  EXPECT_THAT(message([] {
                program_of("in-context-ridge", 8, {{"margin", 1}});
              }),
              HasSubstr("margin"));
  Model model = compile(program_of("in-context-ridge", 8, {}));
  model.origin.notes["learning"] = "in-context-trees";
  EXPECT_THAT(message([&] { carried_learning(model, "x"); }), HasSubstr("in-context-trees"));
  EXPECT_EQ(find_learning_algorithm("ridge"), nullptr);
}

}  // namespace
}  // namespace posattn
