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

Dataset samples_of(const char* task, Purpose purpose, double c = 1) {
  return make_dataset({.task = &find_task(task),
                       .samples = 100,
                       .range = test_range(5, c, false),
                       .seed = 4,
                       .purpose = purpose,
                       .scale = c});
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

// Tests have symbols of their own, also at c = 1; validation has those of training.
TEST(MixedType, SymbolsByPurpose) {
  const auto used = [](Purpose purpose) {
    const Dataset set = samples_of("mixed-min", purpose);
    std::set<std::string> symbols;
    for (const int32_t token : set.tokens) {
      symbols.insert(token < 0 ? "" : find_task("mixed-min").text()->node(token, {}));
    }
    return symbols;
  };
  for (const Purpose purpose : {Purpose::train_data, Purpose::validation_data}) {
    EXPECT_THAT(used(purpose), testing::Contains("A"));
    EXPECT_THAT(used(purpose), testing::Not(testing::Contains("W")));
  }
  for (const Purpose purpose : {Purpose::test_data, Purpose::evaluation_data}) {
    EXPECT_THAT(used(purpose), testing::Contains("W"));
    EXPECT_THAT(used(purpose), testing::Not(testing::Contains("A")));
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
