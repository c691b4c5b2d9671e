#include <gtest/gtest.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

Dataset numbers(const char* task, int length, const std::string& set, double values = 0) {
  return make_dataset({.task = &find_task(task, set),
                       .length = length,
                       .samples = 400,
                       .range = {},
                       .seed = 5,
                       .purpose = Purpose::test_data,
                       .scale = values == 0 ? 1 : values,
                       .axis = values == 0 ? "c" : "values"});
}

bool matches(std::span<const int32_t> x, int i, bool three, int modulus) {
  for (const int32_t a : x) {
    if (!three && (x[i] + a) % modulus == 0) return true;
    for (const int32_t b : x) {
      if (three && (x[i] + a + b) % modulus == 0) return true;
    }
  }
  return false;
}

TEST(Match, LabelsSayWhetherThereIsAMatch) {
  for (const bool three : {false, true}) {
    for (const auto& [length, modulus] : {std::pair{16, 17}, {1, 3}, {7, 2}, {8, 64}}) {
      const Dataset set = numbers(three ? "match-three" : "match-two", length,
                                  "modulus=" + std::to_string(modulus));
      EXPECT_EQ(set.shape.vocabulary, modulus);
      for (int64_t s = 0; s < set.samples; ++s) {
        const auto x = std::span<const int32_t>(set.tokens).subspan(s * length, length);
        for (int i = 0; i < length; ++i) {
          EXPECT_TRUE(x[i] >= 0 && x[i] < modulus);
          EXPECT_EQ(set.labels[s * length + i], matches(x, i, three, modulus) ? 1 : 0);
        }
      }
    }
  }
}

// By another implementation: 0.61 for M = n + 1.
TEST(Match, SharesAreThoseOfUniformNumbers) {
  const Dataset set = numbers("match-two", 16, "");
  EXPECT_NEAR(static_cast<double>(std::ranges::count(set.labels, 1)) / 6400, 0.61, 0.02);
}

TEST(Match, ValuesBoundTheNumbers) {
  const Dataset set = numbers("match-three", 16, "", 5);
  EXPECT_EQ(*std::ranges::max_element(set.tokens), 4);
  EXPECT_EQ(*std::ranges::min_element(set.tokens), 0);
  for (const double values : {0.5, 18.0, -1.0}) {
    EXPECT_THROW(numbers("match-two", 16, "", values), Error);
  }
}

// Recorded runs were trained and tested on such samples.
TEST(Match, GoldenSample) {
  const Dataset set = numbers("match-two", 8, "modulus=9");
  EXPECT_EQ(std::vector<int32_t>(set.tokens.begin(), set.tokens.begin() + 8),
            (std::vector<int32_t>{3, 1, 4, 8, 1, 4, 8, 5}));
}

TEST(Match, BaselinesAnswerTheSameEverywhere) {
  const std::vector<Baseline> baselines = find_task("match-two").baselines();
  std::vector<float> outputs(6);
  baselines[0].predict(3, {.values = {}, .tokens = {}}, outputs);
  EXPECT_EQ(outputs, (std::vector<float>{0, 1, 0, 1, 0, 1}));
  baselines[1].predict(3, {.values = {}, .tokens = {}}, outputs);
  EXPECT_EQ(outputs, (std::vector<float>{1, 0, 1, 0, 1, 0}));
}

TEST(Match, IsWrittenAsNumbers) {
  const TaskText& text = *find_task("match-two").text();
  std::vector<int32_t> tokens(3);
  const SampleRoom room{.values = {}, .tokens = tokens, .targets = {}, .labels = {}};
  EXPECT_EQ(text.length_of("3 16 0"), 3);
  text.read("3 16 0", 3, room);
  EXPECT_EQ(tokens, (std::vector<int32_t>{3, 16, 0}));
  EXPECT_EQ(text.answers(std::vector<int32_t>{1, 0, -1}), "+-?");
  for (const char* wrong : {"3 16", "3 17 0", "3 -1 0", "3 x 0", "1.5 2 3"}) {
    EXPECT_THROW(text.read(wrong, 3, room), Error) << wrong;
  }
}

}  // namespace
}  // namespace posattn
