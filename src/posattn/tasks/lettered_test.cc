// Tasks of letters and numbers against their definitions, written out anew over maps of letters.
#include "posattn/tasks/lettered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "posattn/base/error.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Dataset made(const Task& task, int length, int samples, double c = 1, const char* axis = "c",
             double x = 1) {
  return make_dataset({.task = &task,
                       .length = length,
                       .samples = samples,
                       .range = test_range(2, c, false),
                       .seed = 3,
                       .purpose = Purpose::test_data,
                       .scale = axis == std::string("c") ? c : x,
                       .axis = axis});
}

struct LetteredSample {
  std::vector<float> numbers, targets;
  std::vector<int32_t> tokens;
};

LetteredSample sample_of(const Dataset& set, int64_t i) {
  const auto n = static_cast<int64_t>(set.shape.real_nodes);
  const auto part = [&](const auto& values) {
    return std::vector(values.begin() + i * n, values.begin() + (i + 1) * n);
  };
  return {part(set.inputs), part(set.targets), part(set.tokens)};
}

struct AskedLetters {
  const char *task, *set;
  int asked, length;
};
constexpr AskedLetters asked_tasks[] = {
    {"recall", "", 1, 1},          {"recall", "", 1, 8},
    {"asked-min", "", 4, 8},       {"asked-min", "asked=2", 2, 4},
    {"asked-sum", "", 4, 26},      {"asked-sum", "asked=8", 8, 9},
    {"asked-operation", "", 4, 8}, {"asked-operation", "asked=1", 1, 3}};

double answer_by_word(int32_t question, const std::vector<double>& numbers) {
  if (question == 52) return std::ranges::min(numbers);
  if (question == 54) return std::ranges::max(numbers);
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

TEST(AskedTasks, AnswerWhatTheyAskAboutLetters) {
  for (const AskedLetters& row : asked_tasks) {
    const Task& task = find_task(row.task, row.set);
    const int first = row.task == std::string("recall") ? 0 : 1, before = first + row.asked;
    std::set<int32_t> questions;
    const Dataset set = made(task, row.length, 200);
    ASSERT_EQ(set.shape.real_nodes, before + row.length);
    for (int s = 0; s < 200; ++s) {
      const LetteredSample sample = sample_of(set, s);
      std::map<int32_t, double> numbers;
      for (int i = before; i < set.shape.real_nodes; ++i) {
        EXPECT_TRUE(sample.tokens[i] >= 0 && sample.tokens[i] < 26);
        numbers[sample.tokens[i]] = sample.numbers[i];
      }
      ASSERT_EQ(std::ssize(numbers), row.length) << "letters are different";
      std::vector<double> asked;
      for (int i = first; i < before; ++i) {
        EXPECT_EQ(sample.numbers[i], 0);
        asked.push_back(numbers.at(sample.tokens[i]));
        numbers.erase(sample.tokens[i]);  // each is asked about once
      }
      const int32_t question = first == 0 ? 53 : sample.tokens[0];
      questions.insert(question);
      EXPECT_EQ(sample.targets[0], static_cast<float>(answer_by_word(question, asked)));
      EXPECT_EQ(std::ranges::count(sample.targets, 0.0f), std::ssize(sample.targets) - 1);
    }
    // The least, the sum and the greatest are 52, 53 and 54.
    const std::map<std::string, std::set<int32_t>> known = {{"recall", {53}},
                                                            {"asked-min", {52}},
                                                            {"asked-sum", {53}},
                                                            {"asked-operation", {52, 53, 54}}};
    EXPECT_EQ(questions, known.at(row.task));
  }
}

// The mean over all subsets, weighted by whether they have the right size.
TEST(AskedTasks, BlindBaselineIsTheMeanOverAllQuestions) {
  for (const AskedLetters& row : asked_tasks) {
    if (row.length > 9) continue;
    const Task& task = find_task(row.task, row.set);
    const Dataset set = made(task, row.length, 10);
    for (int s = 0; s < 10; ++s) {
      const LetteredSample sample = sample_of(set, s);
      const auto items = std::span(sample.numbers).last(row.length);
      double sum = 0, choices = 0;
      for (uint32_t mask = 0; mask < 1u << row.length; ++mask) {
        std::vector<double> asked;
        for (int i = 0; i < row.length; ++i) {
          if ((mask >> i & 1) != 0) asked.push_back(items[i]);
        }
        if (std::ssize(asked) != row.asked) continue;
        const bool recall = row.task == std::string("recall");
        sum += answer_by_word(recall ? 53 : sample.tokens[0], asked);
        ++choices;
      }
      std::vector<float> found(sample.numbers.size());
      task.baselines().at(0).predict(row.length, {sample.numbers, sample.tokens}, found);
      EXPECT_NEAR(found[0], sum / choices, 1e-5) << row.task;
    }
  }
}

TEST(SortByKey, NumbersStandInTheOrderOfLetters) {
  const Task& task = find_task("sort-by-key");
  for (const int n : {1, 8, 26}) {
    const Dataset set = made(task, n, 100);
    for (int s = 0; s < 100; ++s) {
      const LetteredSample sample = sample_of(set, s);
      std::map<int32_t, float> numbers;  // in the order of letters
      for (int i = 0; i < n; ++i) numbers[sample.tokens[i]] = sample.numbers[i];
      ASSERT_EQ(std::ssize(numbers), n);
      int j = 0;
      for (const auto& [letter, number] : numbers) EXPECT_EQ(sample.targets[j++], number);
      std::vector<float> found(n);
      task.baselines().at(0).predict(n, {sample.numbers, sample.tokens}, found);
      double mean = 0;
      for (const float number : sample.numbers) mean += number / static_cast<double>(n);
      for (const float output : found) EXPECT_NEAR(output, mean, 1e-6);
    }
  }
}

TEST(Pointer, LettersNamePlaces) {
  for (const int hops : {1, 2, 3, 8}) {
    const Task& task = find_task("pointer", "hops=" + std::to_string(hops));
    std::set<int32_t> places;
    const Dataset set = made(task, 8, 100);
    for (int s = 0; s < 100; ++s) {
      const LetteredSample sample = sample_of(set, s);
      // The matrix of one hop, applied to the numbers from the right.
      std::vector<float> y = sample.numbers;
      for (int hop = 0; hop < hops; ++hop) {
        std::vector<float> next;
        for (const int32_t place : sample.tokens) next.push_back(y.at(place));
        y = next;
      }
      EXPECT_EQ(sample.targets, y);
      places.insert(sample.tokens.begin(), sample.tokens.end());
    }
    EXPECT_EQ(places.size(), 8u);
    EXPECT_EQ(*places.rbegin(), 7);
  }
}

// Over all n^n pointers.
TEST(Pointer, BlindBaselineIsTheMeanOverAllPointers) {
  const std::vector<float> x = {0.5f, -1.25f, 2, -0.5f, 1};
  for (int n = 1; n <= 5; ++n) {
    for (int hops = 1; hops <= 6; ++hops) {
      std::vector<double> mean(n);
      const auto maps = static_cast<int>(std::lround(std::pow(n, n)));
      for (int map = 0; map < maps; ++map) {
        std::vector<int> to;
        for (int i = 0, rest = map; i < n; ++i, rest /= n) to.push_back(rest % n);
        for (int i = 0; i < n; ++i) {
          int at = i;
          for (int hop = 0; hop < hops; ++hop) at = to[at];
          mean[i] += static_cast<double>(x[at]) / maps;
        }
      }
      std::vector<float> found(n);
      const Task& task = find_task("pointer", "hops=" + std::to_string(hops));
      task.baselines().at(0).predict(n, {std::span(x).first(n), {}}, found);
      for (int i = 0; i < n; ++i) EXPECT_NEAR(found[i], mean[i], 1e-6) << n << ", " << hops;
    }
  }
}

const char* const all_tasks[] = {"recall",          "asked-min",   "asked-sum",
                                 "asked-operation", "sort-by-key", "pointer"};

// (a, b) is uniform in [-2c, 2c]^2, but for the part 1 / c^2 of it that lies in [-2, 2]^2, and the
// blind answer is homogeneous: (1 - 1 / c^2) M(c) + M(1) / c^2 = c^2 M(1), so M(c) = (c^2 + 1)
// M(1).
TEST(LetteredTasks, BlindErrorGrowsByTheRuleOfTheRange) {
  for (const char* name : all_tasks) {
    const Task& task = find_task(name);
    const auto error = [&](double c) {
      const Dataset set = made(task, 8, 4000, c);
      const auto mask = loss_mask(task, 8);
      double sum = 0;
      for (int s = 0; s < 4000; ++s) {
        const LetteredSample sample = sample_of(set, s);
        std::vector<float> found(sample.targets.size());
        task.baselines().at(0).predict(8, {sample.numbers, sample.tokens}, found);
        for (size_t i = 0; i < found.size(); ++i) {
          if (mask[i] != 0) sum += std::pow(static_cast<double>(found[i]) - sample.targets[i], 2);
        }
      }
      return sum;
    };
    EXPECT_NEAR(error(5) / error(1), 26, 3) << name;
  }
}

TEST(LetteredTasks, HaveTheirAxes) {
  for (const char* name : all_tasks) {
    const Task& task = find_task(name);
    EXPECT_THROW(task.shape(27), Error) << name;
    EXPECT_EQ(task.test_axes().size(), name[0] == 'r' || name[0] == 'a' ? 2u : 1u) << name;
    // Mixed scales reach the numbers: in [-2, 2] times 10^u.
    DatasetRequest request{.task = &task, .length = 8, .samples = 50, .range = {}};
    const Dataset plain = make_dataset(request);
    request.range = mixed_range(2, 2, false);
    const Dataset mixed = make_dataset(request);
    const auto largest = [](const Dataset& set) { return *std::ranges::max_element(set.inputs); };
    EXPECT_LE(largest(plain), 2) << name;
    EXPECT_GT(largest(mixed), 20) << name;
  }
  const Task& recall = find_task("recall");
  const Dataset unseen = made(recall, 8, 50, 1, "letters", 1);
  EXPECT_TRUE(std::ranges::all_of(unseen.tokens, [](int32_t t) { return t >= 26 && t < 52; }));
  const Dataset seen = made(recall, 8, 50, 1, "letters", 0);
  EXPECT_TRUE(std::ranges::all_of(seen.tokens, [](int32_t t) { return t >= 0 && t < 26; }));
}

struct Line {
  std::vector<int32_t> tokens;
  std::vector<float> numbers;
};

Line read_line(const Task& task, std::string_view text) {
  const int length = task.text()->length_of(text);
  Line line;
  line.tokens.resize(task.shape(length).real_nodes);
  line.numbers.resize(line.tokens.size(), 7);
  task.text()->read(text, length, {line.numbers, line.tokens, {}, {}});
  return line;
}

TEST(LetteredTasks, AreWrittenAsItemsAndAQuestion) {
  const Line recall = read_line(find_task("recall"), "a 0.5, B -1,  ? B");
  EXPECT_THAT(recall.tokens, ElementsAre(27, 0, 27));
  EXPECT_THAT(recall.numbers, ElementsAre(0, 0.5f, -1));
  const Task& two = find_task("asked-operation", "asked=2");
  const Line asked = read_line(two, "a 1,c 2e1,z -3,max z a");
  EXPECT_THAT(asked.tokens, ElementsAre(54, 25, 0, 0, 2, 25));
  EXPECT_THAT(asked.numbers, ElementsAre(0, 0, 0, 1, 20, -3));
  EXPECT_EQ(two.text()->node(54, std::vector{0.0f}), "max");
  EXPECT_EQ(two.text()->node(27, std::vector{0.0f}), "B");
  EXPECT_EQ(two.text()->node(2, std::vector{-1.5f}), "c -1.5");
  const Line pointer = read_line(find_task("pointer"), "b 1, b -2");
  EXPECT_THAT(pointer.tokens, ElementsAre(1, 1));
  const struct {
    const char *task, *line, *message;
  } bad[] = {{"recall", "a 1, b 2, ? c", "'c' in the question"},
             {"recall", "a 1, b 2, a", "question"},
             {"recall", "a 1, b 2, min a", "the question 'min'"},
             {"recall", "a 1, a 2, ? a", "the letter a twice"},
             {"recall", "a x, b 2, ? a", "the item 'a x'"},
             {"recall", "a inf, b 2, ? a", "the item 'a inf'"},
             {"recall", "? a", "items"},
             {"asked-min", "a 1, b 2, c 3, d 4, sum a b c d", "the question 'sum'"},
             {"asked-min", "a 1, b 2, c 3, d 4, min a b c", "a question of 4 words"},
             {"asked-min", "a 1, b 2, c 3, d 4, min a b c a", "'a' in the question"},
             {"sort-by-key", "a 1, B 2", "the item ' B 2'"},
             {"pointer", "a 1, c 2", "the item ' c 2'"}};
  for (const auto& row : bad) {
    try {
      const Task& task = find_task(row.task);
      Line line;
      const int length = std::max(1, task.text()->length_of(row.line));
      line.tokens.resize(task.shape(length).real_nodes);
      line.numbers.resize(line.tokens.size());
      task.text()->read(row.line, length, {line.numbers, line.tokens, {}, {}});
      FAIL() << row.line;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_THAT(error.problem(), HasSubstr(row.message)) << row.line;
      EXPECT_FALSE(error.expected().empty());
    }
  }
}

// All of them, each once; and the tokens of drawn samples are among them.
TEST(Lettered, SymbolInputsAreListed) {
  struct Row {
    const Task& task;
    int length;
    int64_t expected;
  };
  for (const Row& row :
       {Row{find_task("pointer"), 4, 4 * 4 * 4 * 4}, Row{find_task("sort-by-key"), 3, 26 * 25 * 24},
        Row{find_task("recall"), 2, 26 * 25 * 2}}) {
    SCOPED_TRACE(row.task.name());
    ASSERT_EQ(row.task.symbol_inputs(row.length), row.expected);
    const Dataset all = make_dataset({.task = &row.task,
                                      .length = row.length,
                                      .samples = row.expected,
                                      .range = test_range(2, 1, false),
                                      .listed = true});
    std::set<std::vector<int32_t>> tokens;
    for (int64_t i = 0; i < row.expected; ++i) {
      const LetteredSample sample = sample_of(all, i);
      tokens.insert(sample.tokens);
      const auto items = sample.numbers.end() - row.length;
      for (int j = 0; j < row.length; ++j) EXPECT_EQ(items[j], 1 << j);
    }
    EXPECT_EQ(static_cast<int64_t>(tokens.size()), row.expected);
    const Dataset drawn = made(row.task, row.length, 100);
    for (int64_t i = 0; i < 100; ++i) EXPECT_TRUE(tokens.contains(sample_of(drawn, i).tokens));
  }
  EXPECT_EQ(find_task("pointer").symbol_inputs(8), 0);  // too many
  EXPECT_EQ(find_task("sort-by-key").symbol_inputs(26), 0);
  EXPECT_EQ(find_task("asked-sum").symbol_inputs(4), 0);
  EXPECT_EQ(find_task("sort").symbol_inputs(4), 0);
}

}  // namespace
}  // namespace posattn
