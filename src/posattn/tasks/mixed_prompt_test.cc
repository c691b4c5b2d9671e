#include "posattn/tasks/mixed_prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "posattn/base/error.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

constexpr int prompt_count = 400;

MixedPrompt prompt_number(uint32_t index, PromptDraw draw = {}) {
  RandomStream random(7, Purpose::train_data, 0, index);
  draw.range = test_range(5, 1, false);
  draw.question = static_cast<Question>(index % 3);
  return draw_prompt(random, draw);
}

TEST(MixedPrompt, AllAreOneLengthAndReadBackAsTheyWereDrawn) {
  std::set<size_t> lengths, written_lengths;
  for (uint32_t i = 0; i < prompt_count; ++i) {
    MixedPrompt prompt = prompt_number(i);
    const std::string text = text_of(prompt);
    lengths.insert(text.size());
    EXPECT_EQ(text[0], 'C');
    EXPECT_EQ(text_of(read_prompt(text, prompt.prices)), text);
    EXPECT_EQ(read_prompt(text, prompt.prices).answer(), prompt.answer());
    round_to_cents(prompt);
    const MixedPrompt read = read_prompt(written(prompt));
    written_lengths.insert(written(prompt).size());
    EXPECT_EQ(written(read), written(prompt));
    EXPECT_EQ(read.prices, prompt.prices);
    EXPECT_EQ(read.answer(), prompt.answer());
  }
  EXPECT_THAT(lengths, testing::ElementsAre(90));
  EXPECT_EQ(text_length(8), 90);
  EXPECT_EQ(text_length(4), 74);
  EXPECT_EQ(written_lengths.size(), 1);
}

TEST(MixedPrompt, SymbolsAreDifferentAndThoseOfTestsAreNoneOfTraining) {
  std::set<char> trained, tested;
  for (uint32_t i = 0; i < prompt_count; ++i) {
    for (const bool test : {false, true}) {
      const PromptSymbols alphabet = test ? test_symbols : training_symbols;
      const MixedPrompt prompt = prompt_number(i, {.alphabet = alphabet});
      EXPECT_EQ(std::set<char>(prompt.symbols.begin(), prompt.symbols.end()).size(), 8);
      EXPECT_EQ(std::set<int>(prompt.asked.begin(), prompt.asked.end()).size(), 4);
      EXPECT_LT(prompt.distractors[0].place, prompt.distractors[1].place);
      EXPECT_NE(prompt.distractors[0].symbol, prompt.distractors[1].symbol);
      std::set<char>& used = test ? tested : trained;
      used.insert(prompt.symbols.begin(), prompt.symbols.end());
      for (const Distractor& distractor : prompt.distractors) {
        used.insert(distractor.sign);
        EXPECT_NE(prompt.symbols.find(distractor.symbol), std::string::npos);
      }
    }
  }
  EXPECT_EQ(trained.size(), 22);
  EXPECT_EQ(tested.size(), 22);
  for (const char one : tested) EXPECT_FALSE(trained.contains(one)) << one;
  // No letter of the text is a symbol.
  for (const char one : std::string("CatFind sum min max of categories, and0123456789.")) {
    EXPECT_FALSE(trained.contains(one) || tested.contains(one)) << one;
  }
}

TEST(MixedPrompt, TheAnswerIsThatOfTheFourThatTheTextNames) {
  for (uint32_t i = 0; i < prompt_count; ++i) {
    const MixedPrompt prompt = prompt_number(i);
    const std::string text = text_of(prompt);
    double sum = 0, least = 1e9, most = -1;
    for (size_t at = text.find("Find") + 23; at < text.size(); ++at) {
      const size_t category = prompt.symbols.find(text[at]);
      if (category == std::string::npos) continue;
      const double price = prompt.prices[category];
      sum += price;
      least = std::min(least, price);
      most = std::max(most, price);
    }
    const double expected[] = {least, sum, most};
    EXPECT_EQ(prompt.answer(), static_cast<float>(expected[i % 3]));
  }
}

// E (b - a)^2 is a sixth of the range's square, and of that a sixth again; the variance of a
// uniform number a twelfth.
TEST(MixedPrompt, PricesLieInARangeInsideARange) {
  double variance = 0;
  constexpr int many = 20000;
  for (uint32_t i = 0; i < many; ++i) {
    const std::vector<float> prices = prompt_number(i).prices;
    double sum = 0, squares = 0;
    for (const float price : prices) {
      EXPECT_TRUE(price >= 0 && price <= 5);
      sum += price;
      squares += price * price;
    }
    variance += (squares - sum * sum / 8) / 7 / many;
  }
  EXPECT_NEAR(variance, 25.0 / 6 / 6 / 12, 0.004);
}

TEST(MixedPrompt, WrittenForPeople) {
  const MixedPrompt prompt{.symbols = "ABDE",
                           .prices = {1.2f, 3.414f, 0, 100},
                           .distractors = {{1, '+', 'D'}, {4, '-', 'A'}},
                           .question = Question::maximum,
                           .asked = {3, 0, 1, 2}};
  EXPECT_EQ(written(prompt),
            "CatA, 001.20, Cat+D, CatB, 003.41, CatD, 000.00, Cat-A, CatE, 100.00. "
            "Find max of categories CatE, CatA, CatB and CatD.");
  EXPECT_EQ(text_of(prompt),
            "CatACat+DCatBCatDCat-ACatEFind max of categories CatE, CatA, CatB and CatD");
}

TEST(MixedPrompt, WhatIsNoPromptIsRefusedWithThePlace) {
  const std::string names = "CatA 1 Cat+D CatB 2 CatD 3 Cat-A CatE 4. ";
  const std::string question = "Find sum of categories CatE, CatA, CatB and CatD";
  EXPECT_EQ(read_prompt(names + question).answer(), 10);
  const auto problem = [](const std::string& text) {
    try {
      read_prompt(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      return error.problem();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(problem(""), "a prompt with '' at character 1");
  EXPECT_EQ(problem(names), "a prompt with '' at character 42");
  EXPECT_EQ(problem("CatA 1 CatA 2 " + question),
            "a prompt with CatA a second time at character 12");
  EXPECT_EQ(problem("CatA 1 Cat\x1b"), "a prompt with the symbol '\\x1b' at character 11");
  EXPECT_EQ(problem("CatA inf"), "a prompt with 'inf' at character 6");
  EXPECT_EQ(problem("CatA 1 " + question), "a prompt with 0 names without a price at character 13");
  EXPECT_THAT(problem(names + "Cat+B " + question), testing::HasSubstr("one more name"));
  EXPECT_THAT(problem(names + "Find all"), testing::HasSubstr("an unknown question"));
  EXPECT_THAT(problem(names + "Find min of categories CatE, CatA, CatB and CatV"),
              testing::HasSubstr("without a price"));
  EXPECT_THAT(problem(names + "Find min of categories CatE, CatA, CatB and CatA"),
              testing::HasSubstr("names a category twice"));
  EXPECT_THAT(problem(names + question + " or so"), testing::HasSubstr("more text"));
  EXPECT_THROW(read_prompt(text_of(prompt_number(0)), std::vector<float>(7)), Error);
  for (const int categories : {3, 21}) {
    EXPECT_THROW(prompt_number(0, {.categories = categories}), Error);
  }
}

double mean_squared_error(const Task& task, const Baseline& baseline, const Dataset& set) {
  double squared = 0;
  const int64_t nodes = set.shape.real_nodes;
  std::vector<float> outputs(static_cast<size_t>(nodes));
  for (int64_t i = 0; i < set.samples; ++i) {
    baseline.predict(set.length,
                     {.values = std::span(set.inputs).subspan(i * nodes, nodes),
                      .tokens = std::span(set.tokens).subspan(i * nodes, nodes)},
                     outputs);
    const double error = outputs[0] - set.targets[i * nodes];
    squared += error * error;
  }
  EXPECT_GT(set.samples, 0) << task.name();
  return squared / static_cast<double>(set.samples);
}

Dataset samples_of(const Task& task, const char* axis, double x) {
  return make_dataset({.task = &task,
                       .samples = 20000,
                       .range = training_range(5, false),
                       .purpose = Purpose::test_data,
                       .scale = x,
                       .axis = axis});
}

// On samples of the task, the error of the blind answer is the variance of the answer over all
// choices, here from the order statistics; that of the oracle is nothing.
TEST(QueryBlind, BaselinesOfTheTasksOnTheirSamples) {
  for (const char* name : {"mixed-min", "mixed-sum", "mixed-multitask"}) {
    SCOPED_TRACE(name);
    const Task& task = find_task(name);
    const std::vector<Baseline> baselines = task.baselines();
    ASSERT_EQ(baselines.size(), 2);
    ASSERT_EQ(baselines[0].name, "query-blind");
    ASSERT_EQ(baselines[1].name, "oracle");
    const Dataset set = samples_of(task, "c", 1);
    const double blind = mean_squared_error(task, baselines[0], set);
    // For eight uniform numbers in [0, 1]; the squared width of a range inside a range is 25 / 36.
    const double expected = task.name() == "mixed-sum" ? 1.0 / 6 : 1787.0 / 110250;
    EXPECT_NEAR(blind, 25.0 / 36 * expected, 0.05 * expected);
    EXPECT_EQ(mean_squared_error(task, baselines[1], set), 0);
    // Somebody who answers another question is off by two spreads; the blind one does not notice.
    const Dataset swapped = samples_of(task, "swapped", 1);
    EXPECT_NEAR(mean_squared_error(task, baselines[0], swapped), blind, 0.1 * blind);
    EXPECT_NEAR(mean_squared_error(task, baselines[1], swapped), 2 * blind, 0.2 * blind);
    EXPECT_EQ(mean_squared_error(task, baselines[1], samples_of(task, "swapped", 0)), 0);
  }
}

}  // namespace

}  // namespace posattn
