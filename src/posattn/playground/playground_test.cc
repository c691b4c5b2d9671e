#include "posattn/playground/playground.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "posattn/tasks/dataset.h"
#include "posattn/training/run.h"

namespace posattn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

nlohmann::json play_json() {
  return nlohmann::json::parse(std::string(play_text(), play_text_size()));
}
std::vector<double> numbers() { return {play_numbers(), play_numbers() + play_numbers_count()}; }

const char* const small_settings =
    "task=cumulative-sum\nlength=4\nwidth=8\nmlp-width=8\nsamples=20\nbatch=10\nepochs=5\n"
    "validation-samples=5\ntest-samples=5\n";

TEST(Playground, TrainsAsARunDoes) {
  const int32_t model = play_train(small_settings);
  ASSERT_GE(model, 0) << play_text();
  EXPECT_EQ(play_json()["architecture"], "positional");
  EXPECT_EQ(play_json()["steps_per_epoch"], 2);

  RunConfig config;
  config.length = 4;
  config.width = config.mlp_width = 8;
  config.samples = 20;
  config.batch = 10;
  config.epochs = 5;
  config.validation_samples = config.test_samples = 5;
  posattn::Run run(config, 1);  // a test has a Run of its own
  for (int epoch = 1; epoch <= 5; ++epoch) {
    ASSERT_EQ(play_advance(model, 0), 1);
    const auto record = run.advance_epoch();
    EXPECT_THAT(numbers(), ElementsAre(epoch, 2 * epoch, record->train_loss, record->lr));
  }
  EXPECT_EQ(play_advance(model, 0), 0);
  EXPECT_STREQ(play_text(), "");
  play_free_model(model);
  EXPECT_EQ(play_advance(model, 0), -1);
}

TEST(Playground, AnswersForSamplesAndFiles) {
  const int32_t model = play_train(small_settings);
  ASSERT_EQ(play_sample(model, 3, 2, 0), 4);
  std::vector<double> row = numbers();
  const std::vector<double> truth(row.begin() + 4, row.end());
  row.resize(4);
  ASSERT_EQ(play_answer(model, row.data(), 4), 0);
  const std::vector<double> answer = numbers();
  EXPECT_EQ(std::vector<double>(answer.begin() + 4, answer.end()), truth);
  EXPECT_NEAR(truth[3], row[0] + row[1] + row[2] + row[3], 1e-5);

  ASSERT_EQ(play_attention(model, row.data(), 4), 0);
  EXPECT_EQ(play_numbers_count(), 3 * 2 * 5 * 5);
  ASSERT_EQ(play_errors(model, "c=1,5", 20, 0), 2);
  EXPECT_EQ(numbers()[2], 5);

  ASSERT_EQ(play_save(model), 0);
  const std::string bytes(play_text(), play_text_size());
  const int32_t copy = play_load(reinterpret_cast<const uint8_t*>(bytes.data()),
                                 static_cast<int32_t>(bytes.size()), "copy.safetensors");
  ASSERT_GE(copy, 0) << play_text();
  ASSERT_EQ(play_answer(copy, row.data(), 4), 0);
  EXPECT_EQ(numbers(), answer);
  EXPECT_EQ(play_advance(copy, 0), -1);
  play_free_model(model);
  play_free_model(copy);
}

// What the page says to typed letters is what the tasks themselves say of their samples.
TEST(Playground, AnswersLettersAndNumbers) {
  const struct {
    const char *task, *set;
  } cases[] = {{"recall", ""},          {"asked-min", "asked=2"}, {"asked-sum", ""},
               {"asked-operation", ""}, {"sort-by-key", ""},      {"pointer", ""},
               {"pointer", "hops=3"}};
  for (const auto& [name, set] : cases) {
    const std::string settings = std::string("task=") + name + "\ntask-set=" + set +
                                 "\nlength=6\nwidth=8\nmlp-width=8\nsamples=20\nbatch=10\n" +
                                 "depth=1\nvalidation-samples=5\ntest-samples=5\n";
    const int32_t model = play_train(settings.c_str());
    ASSERT_GE(model, 0) << play_text();
    const Task& task = find_task(name, set);
    const TaskShape shape = task.shape(6);
    for (int i = 0; i < 20; ++i) {
      const Dataset drawn = make_dataset({.task = &task,
                                          .length = 6,
                                          .samples = 1,
                                          .purpose = Purpose::evaluation_data,
                                          .sets_before = static_cast<uint32_t>(i)});
      const int32_t count = play_sample(model, 3, i, 0);
      ASSERT_EQ(count, 2 * shape.real_nodes) << play_text();
      const std::vector<double> sample = numbers();
      ASSERT_EQ(play_answer(model, sample.data(), count), 0) << play_text();
      const std::vector<double> answer = numbers();
      for (int node = 0; node < shape.real_nodes; ++node) {
        EXPECT_EQ(sample[2 * node], drawn.tokens[node]);
        const double truth = sample[count + node];
        EXPECT_EQ(std::isnan(truth), !shape.reads(node));
        EXPECT_EQ(std::isnan(answer[node]), !shape.reads(node));
        if (!shape.reads(node)) continue;
        EXPECT_NEAR(truth, 3.0 * drawn.targets[node], 1e-5) << name;
        EXPECT_EQ(answer[shape.real_nodes + node], truth);
      }
    }
    play_free_model(model);
  }
}

TEST(Playground, HasNoAnswerWhereLettersSayNothing) {
  const int32_t model = play_train(
      "task=recall\nlength=2\nwidth=8\nmlp-width=8\nsamples=20\nbatch=10\ndepth=1\n"
      "validation-samples=5\ntest-samples=5\n");
  ASSERT_GE(model, 0) << play_text();
  const nlohmann::json letters = play_json()["letters"];
  EXPECT_EQ(letters[1], "b");
  EXPECT_EQ(letters[27], "B");
  const auto truth = [&](std::vector<double> row) {
    EXPECT_EQ(play_answer(model, row.data(), static_cast<int32_t>(row.size())), 0) << play_text();
    return numbers()[3];
  };
  EXPECT_EQ(truth({27, 0, 1, 0.5, 27, -1}), -1);
  EXPECT_TRUE(std::isnan(truth({2, 0, 1, 0.5, 27, -1})));
  EXPECT_TRUE(std::isnan(truth({1, 0, 1, 0.5, 1, -1})));
  play_free_model(model);
}

TEST(Playground, AnswersClassesWhereTheTaskHasThem) {
  const int32_t model = play_train(
      "task=k-hop\nlength=6\nheads=2\nwidth=8\nmlp-width=8\nsamples=20\nbatch=10\nepochs=1\n"
      "validation-samples=5\ntest-samples=5\ndepth=2\n");
  ASSERT_GE(model, 0) << play_text();
  const nlohmann::json about = play_json();
  EXPECT_TRUE(about["classes"]);
  const int32_t columns = play_sample(model, 1, 0, 0);
  ASSERT_GT(columns, 0) << play_text();
  const std::vector<double> row = numbers();
  ASSERT_EQ(play_answer(model, row.data(), columns), 0) << play_text();
  EXPECT_EQ(play_numbers_count(), 2 * about["real_nodes"].get<int>());
  play_free_model(model);
}

TEST(Playground, SaysWhatIsWrong) {
  EXPECT_EQ(play_train("task=cumulative-summ"), -1);
  EXPECT_THAT(play_json()["message"].get<std::string>(), HasSubstr("cumulative-sum"));
  EXPECT_EQ(play_train("width"), -1);
  EXPECT_EQ(play_json()["expected"], "key=value");
  EXPECT_EQ(play_load(nullptr, 0, "nothing.safetensors"), -1);
  EXPECT_EQ(play_compile("program p\nword x : real = input\nx = y\noutput x\n", 4, "", 0), -1);
  EXPECT_EQ(play_json()["line"], 3);
  EXPECT_EQ(play_run(77, nullptr, 0), -1);
  EXPECT_EQ(play_program_text("sorting"), -1);
}

class PlayedSort : public testing::Test {
 protected:
  PlayedSort() {
    EXPECT_EQ(play_program_text("sort"), 0);
    const std::string text = play_text();
    program_ = play_compile(text.c_str(), 4, "", 0);
    about_ = play_json();
  }
  ~PlayedSort() override { play_free_program(program_); }

  int32_t program_ = -1;
  nlohmann::json about_;
  const std::vector<double> row_ = {3, -1, 2, 0.5};
};

TEST_F(PlayedSort, HoldsTheProgramsWords) {
  ASSERT_EQ(play_run(program_, row_.data(), 4), 0) << play_text();
  EXPECT_THAT(numbers(), ElementsAre(-1, 0.5, 2, 3, -1, 0.5, 2, 3));
  ASSERT_EQ(play_words(program_, row_.data(), 4), 0) << play_text();
  const std::vector<double> words = numbers();
  ASSERT_EQ(words.size(), (about_["rounds"].size() + 1) * 4 * about_["words"].size() * 2);
  int held = 0;
  for (size_t i = 0; i < words.size(); i += 2) {
    if (std::isnan(words[i + 1])) continue;
    EXPECT_EQ(words[i], words[i + 1]);
    ++held;
  }
  EXPECT_GE(held, 4);
  EXPECT_EQ(play_run(program_, row_.data(), 3), -1);
}

TEST_F(PlayedSort, BreaksUnderNoiseAndIsMended) {
  EXPECT_EQ(play_verify(program_, 20, 0), 0);
  EXPECT_TRUE(play_json()["holds"]);
  ASSERT_EQ(play_noise(program_, 0.5, 3), 0);
  EXPECT_GT(play_verify(program_, 20, 0), 0);
  EXPECT_EQ(play_json()["counter_example"]["input"].size(), 4);
  ASSERT_EQ(play_noise(program_, 0, 3), 0);
  EXPECT_EQ(play_verify(program_, 20, 0), 0);
}

TEST_F(PlayedSort, LowSharpnessIsNotExact) {
  ASSERT_EQ(play_program_text("sort"), 0);
  const std::string text = play_text();
  const int32_t soft = play_compile(text.c_str(), 4, "", 2);
  ASSERT_GE(soft, 0) << play_text();
  ASSERT_EQ(play_run(soft, row_.data(), 4), 0);
  EXPECT_NE(numbers()[0], -1);
  play_free_program(soft);
}

int32_t compiled(const char* name, int32_t length) {
  EXPECT_EQ(play_program_text(name), 0) << play_text();
  const std::string text = play_text();
  return play_compile(text.c_str(), length, "", 0);
}

// Words of one name are several (a loop declares its own, the network has a word of ones): a number
// of the network stands next to the word that it is.
TEST(Playground, HoldsTheWordsOfEveryProgram) {
  ASSERT_EQ(play_catalogue(), 0);
  const nlohmann::json all = play_json();
  for (const nlohmann::json& entry : all["programs"]) {
    const auto name = entry["name"].get<std::string>();
    const int32_t program = compiled(name.c_str(), 6);
    ASSERT_GE(program, 0) << name << play_text();
    const nlohmann::json about = play_json();
    ASSERT_EQ(play_draw(program, 1, 3), 0) << play_text();
    const std::vector<double> row = numbers();
    ASSERT_EQ(play_words(program, row.data(), static_cast<int32_t>(row.size())), 0) << play_text();
    const std::vector<double> words = numbers();
    int held = 0;
    double most = 0;
    for (size_t i = 0; i < words.size(); i += 2) {
      if (std::isnan(words[i + 1])) continue;
      ++held;
      most = std::max(most, std::abs(words[i + 1] - words[i]));
    }
    EXPECT_LT(most, 1e-4) << name;
    EXPECT_GE(held, about["processors"].get<int>() * 2) << name;
    // What is typed are the words called inputs, as they are before the first round.
    const size_t inputs = about["inputs"].size(), columns = about["words"].size();
    ASSERT_EQ(row.size() % inputs, 0) << name;
    for (size_t k = 0; k < row.size(); ++k) {
      const auto word = about["inputs"][k % inputs].get<size_t>();
      EXPECT_EQ(words[2 * (k / inputs * columns + word)], row[k]) << name;
    }
    play_free_program(program);
  }
}

TEST(Playground, TellsMessagesAsTheyAreWritten) {
  const int32_t program = compiled("gather", 4);
  ASSERT_GE(program, 0) << play_text();
  EXPECT_EQ(play_json()["promises"][0]["promise"], "permutation");
  const nlohmann::json written = play_json()["written"];
  ASSERT_EQ(written["rounds"].size(), 2);
  const nlohmann::json& receive = written["rounds"][0]["receives"][0];
  const nlohmann::json& destination = written["words"][receive["destination"].get<int>()];
  EXPECT_EQ(destination["name"], "d");
  EXPECT_TRUE(destination["starts"]);
  EXPECT_EQ(written["rounds"][1]["sets"], written["outputs"]);
  const std::vector<double> row = {2, 10, 0, 20, 3, 30, 1, 40};  // whom it asks, what it has
  ASSERT_EQ(play_trace(program, row.data(), 8), 0) << play_text();
  const std::vector<double> words = numbers();
  const size_t columns = written["words"].size();
  ASSERT_EQ(words.size(), 3 * 4 * columns);
  const auto output = written["outputs"][0].get<size_t>();
  std::vector<double> found;
  for (size_t i = 0; i < 4; ++i) found.push_back(words[(2 * 4 + i) * columns + output]);
  EXPECT_THAT(found, ElementsAre(30, 10, 40, 20));
  play_free_program(program);

  const int32_t sort = compiled("sort", 4);
  EXPECT_TRUE(play_json()["written"].is_null());
  play_free_program(sort);
}

TEST(Playground, NamesWhatThereIs) {
  ASSERT_EQ(play_catalogue(), 0);
  const nlohmann::json all = play_json();
  EXPECT_FALSE(all["tasks"].empty());
  EXPECT_FALSE(all["programs"].empty());
  EXPECT_EQ(all["architectures"][0]["name"], "positional");
  EXPECT_EQ(all["architectures"][0]["broken_by"], "");
  EXPECT_THAT(all["architectures"][1]["broken_by"],
              ::testing::HasSubstr("attention from the data"));
  EXPECT_EQ(all["settings"][0]["name"], "task");
}

}  // namespace
}  // namespace posattn
