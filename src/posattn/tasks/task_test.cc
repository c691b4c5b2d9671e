// Every task against an answer found another way: by the definition, prefix by prefix.
#include "posattn/tasks/task.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "posattn/base/error.h"

namespace posattn {
namespace {

using Values = std::vector<double>;
using Answer = std::function<Values(const Values&)>;

// Applies `answer` to each prefix.
Answer each_prefix(const std::function<double(const Values&)>& answer) {
  return [answer](const Values& x) {
    Values y;
    for (size_t end = 1; end <= x.size(); ++end) {
      y.push_back(answer(Values(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(end))));
    }
    return y;
  };
}

double sum_of_range(const Values& x, size_t from, size_t to) {
  double sum = 0;
  for (size_t i = from; i < to; ++i) sum += x[i];
  return sum;
}

double middle(Values x) {
  std::sort(x.begin(), x.end());
  const size_t n = x.size();
  return n % 2 == 1 ? x[n / 2] : 0.5 * (x[n / 2 - 1] + x[n / 2]);
}

double best_subarray(const Values& x) {
  double best = -std::numeric_limits<double>::infinity();
  for (size_t from = 0; from < x.size(); ++from) {
    for (size_t to = from + 1; to <= x.size(); ++to) {
      best = std::max(best, sum_of_range(x, from, to));
    }
  }
  return best;
}

// By counting for each value how many come before it.
Values rank_sorted(const Values& x) {
  Values y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    size_t rank = 0;
    for (size_t j = 0; j < x.size(); ++j) rank += x[j] < x[i] || (x[j] == x[i] && j < i);
    y[rank] = x[i];
  }
  return y;
}

Values smallest_pair_sum(const Values& x) {
  const size_t n = x.size() / 2;
  Values y(2 * n);
  for (size_t i = 0; i < n; ++i) {
    Values sums;
    for (size_t j = 0; j <= i; ++j) sums.push_back(x[j] + x[n + j]);
    y[i] = y[n + i] = *std::min_element(sums.begin(), sums.end());
  }
  return y;
}

// Joins known path sums through every middle node, as Floyd and Warshall do; in a tree there is
// only one path between two nodes, so whichever middle node joins it first is right.
Values all_path_sums(const Values& weights) {
  size_t n = 1;
  while (n * n < weights.size()) ++n;
  Values sum = weights;
  std::vector<bool> known(n * n);
  for (size_t i = 0; i < n * n; ++i) known[i] = weights[i] != 0 || i % (n + 1) == 0;
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        if (known[i * n + j] || !known[i * n + k] || !known[k * n + j]) continue;
        known[i * n + j] = true;
        sum[i * n + j] = sum[i * n + k] + sum[k * n + j];
      }
    }
  }
  EXPECT_TRUE(std::find(known.begin(), known.end(), false) == known.end()) << "not connected";
  return sum;
}

// Of the whole window at its last node, as prefixes have it.
Answer at_the_last(const Answer& answer) {
  return [answer](const Values& x) {
    Values y(x.size());
    y.back() = answer(x).back();
    return y;
  };
}

const std::vector<std::pair<std::string, Answer>>& answers() {
  static const std::vector<std::pair<std::string, Answer>> list = {
      {"cumulative-sum", each_prefix([](const Values& x) { return sum_of_range(x, 0, x.size()); })},
      {"cumulative-min",
       each_prefix([](const Values& x) { return *std::min_element(x.begin(), x.end()); })},
      {"cumulative-max",
       each_prefix([](const Values& x) { return *std::max_element(x.begin(), x.end()); })},
      {"cumulative-median", each_prefix(middle)},
      {"cumulative-max-subarray", each_prefix(best_subarray)},
      {"sort", rank_sorted},
      {"min-sum", smallest_pair_sum},
      {"path", all_path_sums},
      {"stream-sum",
       at_the_last([](const Values& x) { return Values{sum_of_range(x, 0, x.size())}; })},
      {"stream-mean",
       at_the_last([](const Values& x) {  // number by number, without their sum
         double mean = 0;
         for (size_t i = 0; i < x.size(); ++i) mean += (x[i] - mean) / static_cast<double>(i + 1);
         return Values{mean};
       })},
      {"stream-min", at_the_last([](const Values& x) { return Values{rank_sorted(x).front()}; })},
  };
  return list;
}

TEST(Task, SolvesEveryTaskAsItsDefinitionSays) {
  for (const auto& [name, answer] : answers()) {
    const Task& task = find_task(name);
    for (uint32_t trial = 0; trial < 200; ++trial) {
      RandomStream random(17, Purpose::test_data, 0, trial);
      const int shortest = task.shortest_length();
      const int length = trial < 3 ? shortest : shortest + static_cast<int>(random.below(12));
      const ValueRange range = trial % 3 == 0   ? training_range(3, true)
                               : trial % 3 == 1 ? training_range(2, false)
                                                : test_range(2, 10, false);
      const TaskShape shape = task.shape(length);
      std::vector<float> input(shape.input_count());
      std::vector<float> target(shape.target_count(), -99);
      task.draw(random, range, length, input);
      task.solve(length, input, target);
      const Values expected = answer(Values(input.begin(), input.end()));
      ASSERT_EQ(expected.size(), target.size());
      for (size_t i = 0; i < target.size(); ++i) {
        // Both sides sum in double; only cancellation may move the last bit of the float.
        EXPECT_NEAR(target[i], expected[i], 1e-6 * std::max(1.0, std::abs(expected[i])))
            << name << ", length " << length << ", output " << i;
      }
    }
  }
}

TEST(Task, AnswersAreRoundedOnce) {
  // 2^24 + 1 - 2^24 is 1 in double, but 0 when the running sum is kept in float.
  const float input[] = {0x1p24f, 1.0f, -0x1p24f};
  float target[3];
  find_task("cumulative-sum").solve(3, input, target);
  EXPECT_EQ(target[2], 1.0f);
}

TEST(Task, AStreamIsReadAtItsNewestNode) {
  for (const char* name : {"stream-sum", "stream-mean", "stream-min"}) {
    const TaskShape shape = find_task(name).shape(5);
    for (int node = 0; node < 5; ++node) EXPECT_EQ(shape.reads(node), node == 4) << name;
  }
}

TEST(Task, PathDrawsARelabelledLine) {
  const Task& path = find_task("path");
  const int n = 6;
  std::set<std::vector<bool>> patterns;
  for (uint32_t sample = 0; sample < 500; ++sample) {
    RandomStream random(5, Purpose::train_data, 0, sample);
    std::vector<float> input(path.shape(n).input_count());
    path.draw(random, training_range(1, true), n, input);  // -1 and 0: zeros are redrawn
    std::vector<bool> edges;
    int ends = 0;
    for (int i = 0; i < n; ++i) {
      int degree = 0;
      for (int j = 0; j < n; ++j) {
        EXPECT_EQ(input[i * n + j], input[j * n + i]);
        degree += input[i * n + j] != 0;
        edges.push_back(input[i * n + j] != 0);
      }
      EXPECT_EQ(input[i * n + i], 0);
      EXPECT_TRUE(degree == 1 || degree == 2);
      ends += degree == 1;
    }
    EXPECT_EQ(ends, 2);
    patterns.insert(edges);
  }
  // 6! / 2 = 360 lines; 500 draws see about 360 (1 - e^{-500/360}) = 270 of them.
  EXPECT_GT(patterns.size(), 230u);
}

TEST(Task, PathCountsTheStrictUpperTriangle) {
  const Task& path = find_task("path");
  EXPECT_TRUE(path.counts(4, 0, 1));
  EXPECT_FALSE(path.counts(4, 1, 1));
  EXPECT_FALSE(path.counts(4, 2, 1));
  EXPECT_FALSE(path.supports_variable_length());
}

TEST(Task, PathSurvivesAMatrixThatIsNoLine) {
  const Task& path = find_task("path");
  const float triangle[] = {0, 1, 2, 1, 0, 3, 2, 3, 0};
  const float nothing[9] = {};
  float target[9];
  path.solve(3, triangle, target);
  path.solve(3, nothing, target);
  for (const float value : target) EXPECT_EQ(value, 0);
}

TEST(Registry, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const Task* task : tasks()) {
    EXPECT_TRUE(names.insert(task->name()).second) << task->name();
    EXPECT_EQ(&find_task(task->name()), task);
    EXPECT_FALSE(task->description().empty());
  }
}

TEST(Registry, UnknownNameSuggestsTheNearest) {
  try {
    find_task("cumulative-summ");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(error.hint().find("cumulative-sum"), std::string::npos);
  }
}

}  // namespace
}  // namespace posattn
