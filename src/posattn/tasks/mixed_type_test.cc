#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "posattn/base/error.h"
#include "posattn/tasks/dataset.h"
#include "posattn/tasks/mixed_prompt.h"

namespace posattn {
namespace {

constexpr const char* mixed_tasks[] = {"mixed-min", "mixed-sum", "mixed-multitask"};
constexpr int nodes = 98, text_nodes = 90;

Dataset samples_of(const char* task, Purpose purpose, double x = 1, const char* axis = "c") {
  return make_dataset({.task = &find_task(task),
                       .samples = 100,
                       .range = test_range(5, axis == std::string("c") ? x : 1, false),
                       .seed = 4,
                       .purpose = purpose,
                       .scale = x,
                       .axis = axis});
}

// The prompt of a sample as people would read it.
std::string text_of(const Task& task, const Dataset& set, int64_t sample) {
  std::string text;
  for (int node = 0; node < text_nodes; ++node) {
    text += task.text()->node(set.tokens[sample * nodes + node], {});
  }
  return text;
}

TEST(MixedType, ASampleIsTextThenPricesAndItsAnswerIsReadAtTheFirstNode) {
  std::set<Question> asked;
  for (const char* name : mixed_tasks) {
    const Task& task = find_task(name);
    const Dataset set = samples_of(name, Purpose::train_data);
    EXPECT_EQ(set.shape.real_nodes, nodes);
    EXPECT_EQ(set.shape.read_nodes, 1);
    EXPECT_EQ(set.shape.vocabulary, 63);
    for (int64_t i = 0; i < set.samples; ++i) {
      const auto prices = std::span(set.inputs).subspan(i * nodes + text_nodes, nodes - text_nodes);
      const MixedPrompt prompt = read_prompt(text_of(task, set, i), prices);
      EXPECT_EQ(set.targets[i * nodes], prompt.answer());
      asked.insert(prompt.question);
      for (int node = 0; node < nodes; ++node) {
        EXPECT_EQ(set.tokens[i * nodes + node] < 0, node >= text_nodes);
        EXPECT_TRUE(node >= text_nodes || set.inputs[i * nodes + node] == 0);
        EXPECT_TRUE(node == 0 || set.targets[i * nodes + node] == 0);
      }
    }
  }
  EXPECT_EQ(asked.size(), 3u);
}

// Prompts with fewer names, and with prices where people write them.
TEST(MixedType, VariantsReadAsTheyAreWritten) {
  for (const char* places : {"last", "inside"}) {
    for (const int asked : {1, 2, 3, 4}) {
      for (const int distractors : {0, 1, 2}) {
        const std::string set =
            fmt::format("asked={},distractors={},prices={}", asked, distractors, places);
        SCOPED_TRACE(set);
        const Task& task = find_task("mixed-min", set);
        const int length = asked + 2;
        const PromptNames names{.asked = asked, .distractors = distractors};
        const Dataset made = make_dataset({.task = &task,
                                           .length = length,
                                           .samples = 20,
                                           .range = test_range(5, 1, false),
                                           .purpose = Purpose::train_data});
        const int64_t count = made.shape.real_nodes;
        EXPECT_EQ(count, text_length(length, names) + length);
        for (int64_t i = 0; i < made.samples; ++i) {
          std::string nodes, text;
          std::vector<float> prices;
          for (int64_t at = i * count; at < (i + 1) * count; ++at) {
            const int32_t token = made.tokens[at];
            const std::string node =
                task.text()->node(token, std::span(made.inputs).subspan(at, 1));
            nodes += node;
            if (token < 0) prices.push_back(made.inputs[at]);
            if (token >= 0) text += node;
          }
          MixedPrompt prompt = read_prompt(text, prices, names);
          EXPECT_EQ(made.targets[i * count], prompt.answer());
          EXPECT_EQ(std::ssize(prompt.asked), asked);
          EXPECT_EQ(std::ssize(prompt.distractors), distractors);
          std::string expected = text_of(prompt);
          for (const float price : prices) expected += written_price(price);
          if (places == std::string("inside")) {
            round_to_cents(prompt);
            expected = written(prompt);
            expected.pop_back();  // the point
            const size_t end = expected.rfind(". Find");
            std::string items = expected.substr(0, end);
            std::erase_if(items, [](char c) { return c == ',' || c == ' '; });
            expected = items + expected.substr(end + 2);
          }
          EXPECT_EQ(nodes, expected);
          // What people write is the same sample.
          std::vector<float> values(count);
          std::vector<int32_t> tokens(count);
          const std::string line = written(prompt);
          EXPECT_EQ(task.text()->length_of(line), length);
          task.text()->read(line, length,
                            {.values = values, .tokens = tokens, .targets = {}, .labels = {}});
          EXPECT_TRUE(std::ranges::equal(tokens, std::span(made.tokens).subspan(i * count, count)));
        }
      }
    }
  }
}

// Tests have symbols of their own, also at c = 1; validation has those of training.
TEST(MixedType, SymbolsByPurpose) {
  const auto used = [](Purpose purpose, const char* axis = "c", double x = 1) {
    const Dataset set = samples_of("mixed-min", purpose, x, axis);
    std::set<std::string> symbols;
    for (const int32_t token : set.tokens) {
      symbols.insert(token < 0 ? "" : find_task("mixed-min").text()->node(token, {}));
    }
    return symbols;
  };
  const Dataset same = make_dataset({.task = &find_task("mixed-min", "symbols=same"),
                                     .samples = 100,
                                     .range = test_range(5, 3, false),
                                     .purpose = Purpose::test_data,
                                     .scale = 3});
  const auto unseen = static_cast<int32_t>(std::string(" ,CFacdefgimnorstux").size() + 22);
  EXPECT_TRUE(std::ranges::all_of(same.tokens, [&](int32_t token) { return token < unseen; }));
  for (const Purpose purpose : {Purpose::train_data, Purpose::validation_data}) {
    EXPECT_THAT(used(purpose), testing::Contains("A"));
    EXPECT_THAT(used(purpose), testing::Not(testing::Contains("W")));
  }
  for (const Purpose purpose : {Purpose::test_data, Purpose::evaluation_data}) {
    EXPECT_THAT(used(purpose), testing::Contains("W"));
    EXPECT_THAT(used(purpose), testing::Not(testing::Contains("A")));
    EXPECT_THAT(used(purpose, "symbols", 0), testing::Contains("A"));
    EXPECT_THAT(used(purpose, "symbols", 1), testing::Contains("W"));
  }
}

TEST(MixedType, PricesFollowTheScale) {
  float most = 0;
  for (const float price : samples_of("mixed-sum", Purpose::test_data, 10).inputs) {
    EXPECT_GE(price, 0);
    most = std::max(most, price);
  }
  EXPECT_GT(most, 25);
  EXPECT_LE(most, 50);
}

TEST(MixedType, ReadsAPromptAsPeopleWriteIt) {
  const Task& task = find_task("mixed-min");
  const std::string line =
      "CatA, 1.50, Cat+D, CatB, 2, CatD, 3, Cat-A, CatE, 4. Find min of categories CatE, CatD, "
      "CatB and CatA.";
  EXPECT_EQ(task.text()->length_of(line), 4);
  const int real_nodes = task.shape(4).real_nodes;
  std::vector<float> values(real_nodes);
  std::vector<int32_t> tokens(real_nodes);
  const SampleRoom room{.values = values, .tokens = tokens, .targets = {}, .labels = {}};
  task.text()->read(line, 4, room);
  EXPECT_EQ(task.text()->node(tokens[3], {}), "A");
  EXPECT_EQ(tokens[real_nodes - 4], -1);
  EXPECT_EQ(task.text()->node(-1, std::span(values).subspan(real_nodes - 4, 1)), "001.50");
  std::vector<float> outputs(real_nodes);
  task.baselines()[1].predict(4, {.values = values, .tokens = tokens}, outputs);
  EXPECT_EQ(outputs[0], 1.5f);
  EXPECT_THROW(task.text()->read(line, 8, room), Error);
  EXPECT_THROW(task.text()->read("two and two", 4, room), Error);
  const TaskText& sum = *find_task("mixed-sum").text();
  EXPECT_THROW(sum.read(line, 4, room), Error);  // another question
  EXPECT_NE(sum.form().find("Find sum of"), std::string_view::npos);
}

TEST(MixedType, RefusesLengthsAndPlacesThatItDoesNotHave) {
  const Task& task = find_task("mixed-min");
  EXPECT_THROW(task.shape(3), Error);
  EXPECT_THROW(task.shape(21), Error);
  EXPECT_THROW(make_dataset({.task = &task,
                             .samples = 1,
                             .range = training_range(5, false),
                             .scale = 2,
                             .axis = "swapped"}),
               Error);
}

}  // namespace
}  // namespace posattn
