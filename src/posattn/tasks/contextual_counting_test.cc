#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

struct AskedTexts {
  const char* task = "contextual-counting";
  const char* set = "";
  const char* axis = "c";
  double x = 1;
  int samples = 300;
};

Dataset texts(int length, const AskedTexts& asked) {
  return make_dataset({.task = &find_task(asked.task, asked.set),
                       .length = length,
                       .samples = asked.samples,
                       .range = test_range(2, asked.axis == std::string("c") ? asked.x : 1, false),
                       .seed = 5,
                       .purpose = Purpose::test_data,
                       .scale = asked.x,
                       .axis = asked.axis});
}

// A sample as text: numbers are 'x'.
std::string text_of(const Dataset& set, int64_t sample) {
  std::string text;
  for (int i = 0; i < set.length; ++i) {
    const int32_t token = set.tokens[sample * set.shape.real_nodes + 1 + i];
    text += token < 0 ? 'x' : "01[]"[token];
  }
  return text;
}

SampleView view(const Dataset& set, int64_t sample, const ComparedModel& model = {}) {
  const int64_t nodes = set.shape.real_nodes, values = set.shape.input_count();
  return {.values = std::span(set.inputs).subspan(sample * values, values),
          .tokens = std::span(set.tokens).subspan(sample * nodes, nodes),
          .model = model};
}

// The sums of a text, found by cutting it at its brackets.
std::vector<double> by_cutting(const std::string& text, const float* values, size_t regions) {
  std::vector<double> sums;
  for (size_t open = text.find('['); open != std::string::npos; open = text.find('[', open + 1)) {
    const size_t close = text.find(']', open);
    double sum = 0;
    for (size_t i = open + 1; i < close; ++i) {
      sum += text[i] == '1' ? 1 : text[i] == 'x' ? values[i] : 0;
    }
    sums.push_back(sum);
  }
  sums.resize(regions);
  return sums;
}

TEST(ContextualCounting, AnswersAreSumsOfTheRegions) {
  const struct {
    AskedTexts asked;
    int length, regions;
  } rows[] = {{{}, 32, 4},
              {{.set = "regions=1"}, 2, 1},
              {{.axis = "regions", .x = 2}, 20, 2},
              {{.set = "regions=7"}, 16, 7},
              {{.task = "contextual-sum"}, 32, 4},
              {{.task = "contextual-sum", .axis = "c", .x = 10}, 24, 4},
              {{.task = "contextual-sum", .set = "regions=2"}, 9, 2}};
  for (const auto& [asked, length, regions] : rows) {
    const Dataset set = texts(length, asked);
    const int questions = -set.shape.read_nodes, nodes = 1 + length + questions;
    EXPECT_EQ(set.shape.real_nodes, nodes);
    EXPECT_EQ(set.shape.vocabulary, 5 + questions);
    for (int64_t s = 0; s < set.samples; ++s) {
      const std::string text = text_of(set, s);
      EXPECT_EQ(std::ranges::count(text, '['), regions);
      EXPECT_EQ(std::ranges::count(text, ']'), regions);
      EXPECT_EQ(text.find(set.shape.data_columns == 0 ? 'x' : '1'), std::string::npos);
      const std::vector<double> sums =
          by_cutting(text, set.inputs.empty() ? nullptr : &set.inputs[s * nodes + 1], questions);
      for (int i = 0; i < nodes; ++i) {
        const double expected = i <= length ? 0 : sums[i - length - 1];
        EXPECT_NEAR(set.targets[s * nodes + i], expected, 1e-5 * asked.x) << text;
        if (i == 0 || i > length) {
          EXPECT_EQ(set.tokens[s * nodes + i], i == 0 ? 4 : 4 + i - length);
        }
      }
    }
  }
}

TEST(ContextualCounting, DensityIsTheShareOfOnes) {
  for (const char* task : {"contextual-counting", "contextual-sum"}) {
    for (const double density : {0.0, 0.25, 1.0}) {
      const Dataset set = texts(40, {.task = task, .axis = "density", .x = density});
      double ones = 0;
      for (int64_t s = 0; s < set.samples; ++s) {
        for (const char letter : text_of(set, s)) ones += letter == '1' || letter == 'x';
      }
      const double letters = 32.0 * static_cast<double>(set.samples);
      EXPECT_NEAR(ones / letters, density,
                  5 * std::sqrt(density * (1 - density) / letters) + 1e-12);
    }
  }
  // In training p is uniform: counts differ by more than those of one density would.
  const Dataset set = texts(40, {.samples = 2000});
  double sum = 0, squares = 0;
  for (int64_t s = 0; s < set.samples; ++s) {
    const std::string text = text_of(set, s);
    const double share = static_cast<double>(std::ranges::count(text, '1')) / 32;
    sum += share / 2000;
    squares += share * share / 2000;
  }
  EXPECT_NEAR(sum, 0.5, 0.03);
  EXPECT_NEAR(squares - sum * sum, 1.0 / 12 + 1.0 / 6 / 32, 0.01);
}

TEST(ContextualCounting, BaselinesAreWhatTheySay) {
  const Task& task = find_task("contextual-counting");
  const Dataset set = texts(20, {});
  std::vector<float> found(25);
  for (int64_t s = 0; s < set.samples; ++s) {
    const std::vector<double> sums = by_cutting(text_of(set, s), nullptr, 4);
    task.baselines()[0].predict(20, view(set, s), found);
    for (int g = 0; g < 4; ++g) {
      EXPECT_NEAR(found[21 + g], (sums[0] + sums[1] + sums[2] + sums[3]) / 4, 1e-6);
    }
    task.baselines()[1].predict(20, view(set, s, {.length = 41}), found);
    for (int g = 0; g < 4; ++g) EXPECT_NEAR(found[21 + g], 2 * sums[g], 1e-6);
  }
}

TEST(ContextualCounting, IsWrittenAsLetters) {
  const Task& task = find_task("contextual-counting");
  const std::string line = "[0][101]0[1]1[]0";
  ASSERT_EQ(task.text()->length_of(line), 16);
  std::vector<int32_t> tokens(21);
  task.text()->read(line, 16, {.values = {}, .tokens = tokens, .targets = {}, .labels = {}});
  std::string again;
  for (const int32_t token : tokens) again += task.text()->node(token, {});
  EXPECT_EQ(again, "^" + line + "?1?2?3?4");
  for (const char* wrong : {"[0][101]0[1]1[]", "[0][101]0[1]1[]2"}) {
    EXPECT_THROW(
        task.text()->read(wrong, 16, {.values = {}, .tokens = tokens, .targets = {}, .labels = {}}),
        Error);
  }
}

// Recorded runs were trained and tested on such samples.
TEST(ContextualCounting, GoldenSamples) {
  const Dataset counts = texts(16, {.set = "regions=2", .samples = 1});
  EXPECT_EQ(text_of(counts, 0), "[01100]1101[0]00");
  EXPECT_EQ(counts.targets[17], 2);
  EXPECT_EQ(counts.targets[18], 0);
  const Dataset sums = texts(16, {.task = "contextual-sum", .set = "regions=2", .samples = 1});
  EXPECT_EQ(text_of(sums, 0), "[00x00]00x0[0]00");
  EXPECT_NEAR(sums.targets[17], -0.999927, 1e-5);
  EXPECT_EQ(sums.targets[18], 0);
}

TEST(ContextualCounting, RefusesWhatATextCannotHave) {
  EXPECT_THROW(texts(7, {}), Error);
  for (const double x : {0.0, 5.0, 1.5})
    EXPECT_THROW(texts(20, {.axis = "regions", .x = x}), Error);
  for (const double x : {-0.1, 1.1}) EXPECT_THROW(texts(20, {.axis = "density", .x = x}), Error);
}

}  // namespace
}  // namespace posattn
