// Samples against every function of a class, and learners against learners by enumeration.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "posattn/base/error.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

using Bits = std::vector<int>;  // -1 and 1
using Function = std::function<int(const Bits&)>;

struct AskedFunctions {
  std::string type = "conjunction";
  int d = 3, length = 12;
  int samples = 100;
  std::string axis = "c";
  double x = 1;
  bool teaching = false;
};

const Task& task_for(const AskedFunctions& asked) {
  return find_task("in-context-" + asked.type,
                   "d=" + std::to_string(asked.d) + (asked.teaching ? ",teaching=1" : ""));
}

Dataset function_samples(const AskedFunctions& asked) {
  return make_dataset({.task = &task_for(asked),
                       .length = asked.length,
                       .samples = asked.samples,
                       .range = test_range(1, asked.axis == "c" ? asked.x : 1, false),
                       .seed = 7,
                       .purpose = Purpose::test_data,
                       .scale = asked.x,
                       .axis = asked.axis});
}

struct FunctionSample {
  std::vector<Bits> xs;
  Bits ys, asked;  // asked: the label where it counts, else 0
};

FunctionSample function_sample(const Dataset& set, int64_t index, double scale = 1) {
  const int d = set.shape.data_columns, m = set.length;
  const float* values = set.inputs.data() + index * 2 * m * d;
  FunctionSample sample;
  for (int i = 0; i < m; ++i) {
    Bits x;
    for (int k = 0; k < d; ++k) {
      const float value = values[2 * i * d + k];
      EXPECT_NEAR(std::abs(value), scale, 1e-6 * scale);
      x.push_back(value > 0 ? 1 : -1);
      const float label = values[(2 * i + 1) * d + k];
      EXPECT_EQ(std::abs(label), k == 0 ? 1 : 0);
      if (k == 0) sample.ys.push_back(static_cast<int>(label));
    }
    sample.xs.push_back(x);
    const int32_t label = set.labels[index * 2 * m + 2 * i];
    sample.asked.push_back(label < 0 ? 0 : 2 * label - 1);
    EXPECT_EQ(set.labels[index * 2 * m + 2 * i + 1], -1);
    if (label >= 0) {
      EXPECT_EQ(sample.asked.back(), sample.ys.back());
    }
  }
  return sample;
}

// All vectors of d whole numbers from `low` to `high`.
std::vector<Bits> vectors(int d, int low, int high) {
  std::vector<Bits> all = {{}};
  for (int k = 0; k < d; ++k) {
    std::vector<Bits> longer;
    for (const Bits& one : all) {
      for (int value = low; value <= high; ++value) {
        longer.push_back(one);
        longer.back().push_back(value);
      }
    }
    all = longer;
  }
  return all;
}

Function conjunction(const Bits& w) {
  return [w](const Bits& x) {
    for (size_t k = 0; k < w.size(); ++k) {
      if (w[k] == -x[k]) return -1;
    }
    return 1;
  };
}
Function disjunction(const Bits& w) {
  return [w](const Bits& x) {
    for (size_t k = 0; k < w.size(); ++k) {
      if (w[k] == x[k]) return 1;
    }
    return -1;
  };
}
Function sum_above(const Bits& w, double bound) {
  return [w, bound](const Bits& x) {
    double sum = -bound;
    for (size_t k = 0; k < w.size(); ++k) sum += w[k] * x[k];
    return sum > 0 ? 1 : -1;
  };
}
Function parity(const Bits& w) {
  return [w](const Bits& x) {
    int sign = -1;
    for (size_t k = 0; k < w.size(); ++k) {
      if (w[k] == 1 && x[k] == 1) sign = -sign;
    }
    return sign;
  };
}
Function joined(const std::vector<Function>& parts, bool any) {
  return [parts, any](const Bits& x) {
    for (const Function& part : parts) {
      if ((part(x) == 1) == any) return any ? 1 : -1;
    }
    return any ? -1 : 1;
  };
}

std::vector<Function> functions(const std::string& type, int d) {
  std::vector<Function> all;
  if (type == "halfspace") {
    for (const Bits& w : vectors(d, -3, 3)) all.push_back(sum_above(w, 0.5));
  } else if (type == "majority" || type == "parity") {
    for (const Bits& w : vectors(d, 0, 1)) {
      all.push_back(type == "parity" ? parity(w) : sum_above(w, 0.5));
    }
  } else {
    for (const Bits& w : vectors(d, -1, 1)) {
      if (type == "threshold") {
        for (double bound = -2.5; bound <= 2.5; ++bound) all.push_back(sum_above(w, bound));
      } else {
        all.push_back(type == "conjunction" || type == "dnf" ? conjunction(w) : disjunction(w));
      }
    }
  }
  if (type != "dnf" && type != "cnf") return all;
  std::vector<Function> threes;
  for (const Function& a : all) {
    for (const Function& b : all) {
      for (const Function& c : all) threes.push_back(joined({a, b, c}, type == "dnf"));
    }
  }
  return threes;
}

bool agrees(const Function& function, const FunctionSample& sample) {
  for (size_t i = 0; i < sample.xs.size(); ++i) {
    if (function(sample.xs[i]) != sample.ys[i]) return false;
  }
  return true;
}

TEST(InContextFunction, LabelsAreThoseOfOneFunctionOfTheClass) {
  for (const char* type : {"conjunction", "disjunction", "dnf", "cnf", "majority", "threshold",
                           "halfspace", "parity"}) {
    const int d = std::string(type).ends_with("nf") ? 2 : 3;
    const std::vector<Function> all = functions(type, d);
    for (const bool teaching : {false, true}) {
      if (teaching && task_for({.type = type}).parameters().size() == 1) continue;
      const Dataset set = function_samples({.type = type, .d = d, .teaching = teaching});
      for (int64_t s = 0; s < set.samples; ++s) {
        const FunctionSample sample = function_sample(set, s);
        EXPECT_TRUE(std::ranges::any_of(all, [&](const Function& function) {
          return agrees(function, sample);
        })) << type;
        EXPECT_EQ(sample.asked, sample.ys);
      }
    }
  }
}

TEST(InContextFunction, NearestTakesTheLabelOfTheMostSimilar) {
  const Dataset set = function_samples({.type = "nearest", .d = 4, .length = 14});
  for (int64_t s = 0; s < set.samples; ++s) {
    const FunctionSample sample = function_sample(set, s);
    for (size_t i = 0; i < 14; ++i) {
      if (i < 4) {  // a quarter, rounded up
        EXPECT_EQ(sample.asked[i], 0);
        continue;
      }
      int least = 5, label = 0;
      for (size_t j = 0; j < i; ++j) {
        int different = 0;
        for (int k = 0; k < 4; ++k) different += sample.xs[i][k] != sample.xs[j][k];
        if (different < least) label = sample.ys[j];
        least = std::min(least, different);
      }
      EXPECT_EQ(sample.asked[i], label);
    }
  }
}

// The classes that a baseline answers with, as -1 and 1.
Bits guesses(const Baseline& baseline, const Dataset& set, int64_t index) {
  const int64_t inputs = set.shape.input_count();
  std::vector<float> outputs(static_cast<size_t>(4) * set.length);
  baseline.predict(set.length,
                   {.values = std::span(set.inputs).subspan(index * inputs, inputs), .tokens = {}},
                   outputs);
  Bits found;
  for (int i = 0; i < set.length; ++i)
    found.push_back(outputs[4 * i + 1] > outputs[4 * i] ? 1 : -1);
  return found;
}

const Baseline& named(const std::vector<Baseline>& all, const std::string& name) {
  return *std::ranges::find(all, name, &Baseline::name);
}

// Elimination answers yes where all functions do that agree with the yeses so far, and no before
// the first yes (with the signs turned round for disjunctions). Elimination modulo 2 answers with
// what all parities say that agree with all so far, where they say the same.
TEST(InContextFunction, LearnersAreThoseByEnumeration) {
  for (const std::string type : {"conjunction", "disjunction", "parity"}) {
    const int sign = type == "disjunction" ? -1 : 1;
    const bool of_all = type == "parity";
    const std::vector<Function> all = functions(type, 3);
    const std::vector<Baseline> baselines = task_for({.type = type}).baselines();
    const Dataset set = function_samples({.type = type});
    for (int64_t s = 0; s < set.samples; ++s) {
      const FunctionSample sample = function_sample(set, s);
      const Bits found = guesses(named(baselines, "learner"), set, s);
      std::vector<Function> left = all;
      bool yes = false;
      for (size_t i = 0; i < sample.xs.size(); ++i) {
        const auto says = [&](int label) {
          return std::ranges::all_of(
              left, [&](const Function& function) { return function(sample.xs[i]) == label; });
        };
        const int expected = of_all ? (says(1) ? 1 : -1) : yes && says(sign) ? sign : -sign;
        EXPECT_EQ(found[i], expected) << type << ' ' << i;
        if (!of_all && sample.ys[i] != sign) continue;
        yes = true;
        std::erase_if(
            left, [&](const Function& function) { return function(sample.xs[i]) != sample.ys[i]; });
      }
    }
  }
}

// Shares of right answers over all points, d = 8 with 32 points, by another implementation of
// samplers and learners.
TEST(InContextFunction, LearnersAreAsGoodAsKnown) {
  const struct {
    const char *type, *learner;
    double right;
  } rows[] = {{"conjunction", "learner", 0.878},
              {"conjunction", "nearest-neighbour", 0.783},
              {"conjunction", "averaging", 0.746},
              {"parity", "learner", 0.872},
              {"disjunction", "learner", 0.878}};
  for (const auto& row : rows) {
    const Dataset set = function_samples({.type = row.type, .d = 8, .length = 32, .samples = 1000});
    const std::vector<Baseline> baselines = task_for({.type = row.type, .d = 8}).baselines();
    double right = 0;
    for (int64_t s = 0; s < set.samples; ++s) {
      const FunctionSample sample = function_sample(set, s);
      const Bits found = guesses(named(baselines, row.learner), set, s);
      for (size_t i = 0; i < 32; ++i) right += found[i] == sample.ys[i];
    }
    EXPECT_NEAR(right / 32000, row.right, 0.015) << row.type << ' ' << row.learner;
  }
}

TEST(InContextFunction, NearestNeighbourLearnsItsOwnClass) {
  const AskedFunctions asked{.type = "nearest", .d = 5, .length = 20};
  const Dataset set = function_samples(asked);
  for (int64_t s = 0; s < set.samples; ++s) {
    const FunctionSample sample = function_sample(set, s);
    const Bits found = guesses(named(task_for(asked).baselines(), "nearest-neighbour"), set, s);
    for (size_t i = 5; i < 20; ++i) EXPECT_EQ(found[i], sample.ys[i]);
  }
}

TEST(InContextFunction, AxesDecideWhatTheyName) {
  function_sample(function_samples({.axis = "c", .x = 10}), 3, 10);
  const Dataset one = function_samples({.axis = "examples", .x = 5});
  for (int64_t s = 0; s < one.samples; ++s) {
    const FunctionSample sample = function_sample(one, s);
    for (size_t i = 0; i < 12; ++i) EXPECT_EQ(sample.asked[i], i == 5 ? sample.ys[i] : 0);
  }
  // Without literals an and is always true, an or never, a parity even.
  for (const auto& [type, label] :
       {std::pair{"conjunction", 1}, {"disjunction", -1}, {"parity", -1}, {"majority", -1}}) {
    const Dataset set = function_samples({.type = type, .axis = "literals", .x = 0});
    for (int64_t s = 0; s < set.samples; ++s) {
      EXPECT_THAT(function_sample(set, s).ys, testing::Each(label)) << type;
    }
  }
  // With all literals a conjunction is true at one point, and a parity is of all coordinates.
  const Dataset all = function_samples({.type = "parity", .axis = "literals", .x = 3});
  for (int64_t s = 0; s < all.samples; ++s) {
    EXPECT_TRUE(agrees(parity({1, 1, 1}), function_sample(all, s)));
  }
}

// After its teaching sequence elimination knows a conjunction.
TEST(InContextFunction, TeachingTeaches) {
  for (const AskedFunctions& asked :
       {AskedFunctions{.axis = "teaching"}, AskedFunctions{.teaching = true},
        AskedFunctions{.type = "disjunction", .axis = "teaching"}}) {
    const Dataset set = function_samples(asked);
    const std::vector<Baseline> baselines = task_for(asked).baselines();
    for (int64_t s = 0; s < set.samples; ++s) {
      const FunctionSample sample = function_sample(set, s);
      const Bits found = guesses(named(baselines, "learner"), set, s);
      EXPECT_EQ(sample.ys[0], sample.ys[1]);
      for (size_t i = 2; i < 12; ++i) EXPECT_EQ(found[i], sample.ys[i]);
    }
  }
}

// Recorded runs were trained and tested on such samples: points with their labels.
TEST(InContextFunction, GoldenSamples) {
  const std::pair<const char*, const char*> rows[] = {
      {"conjunction", "--+1 ---1 -+-0 -++0 --+1 +--1 "},
      {"disjunction", "-++0 -+-0 -+-0 -++0 --+1 +--1 "},
      {"dnf", "+-+1 +++1 -++1 ---1 +-+1 -+-0 "},
      {"cnf", "+-+1 ++-0 -++0 ---0 +-+1 -+-0 "},
      {"majority", "+--0 +--0 ---0 -+-1 +-+0 +--0 "},
      {"threshold", "-+-0 ---0 --+0 -+-0 ++-0 --+0 "},
      {"halfspace", "---1 -+-1 +-+0 +--0 -++1 +--0 "},
      {"parity", "+--0 +--0 ---0 -+-1 +-+0 +--0 "},
      {"nearest", "--+1 ---1 ---1 +-+1 -++1 ---1 "}};
  for (const auto& [type, expected] : rows) {
    const FunctionSample sample = function_sample(function_samples({.type = type, .length = 6}), 0);
    std::string text;
    for (size_t i = 0; i < 6; ++i) {
      for (const int value : sample.xs[i]) text += value > 0 ? '+' : '-';
      text += sample.ys[i] > 0 ? "1 " : "0 ";
    }
    EXPECT_EQ(text, expected) << type;
  }
}

TEST(InContextFunction, RefusesPlacesOffItsAxes) {
  for (const AskedFunctions& asked :
       {AskedFunctions{.axis = "examples", .x = 12}, AskedFunctions{.axis = "literals", .x = 4},
        AskedFunctions{.axis = "literals", .x = 1.5}, AskedFunctions{.axis = "teaching", .x = 2},
        AskedFunctions{.type = "nearest", .axis = "examples", .x = 2}}) {
    EXPECT_THROW(function_samples(asked), Error) << asked.axis;
  }
}

// What a person writes is the sample that the task draws.
TEST(InContextFunction, SamplesAreWrittenAsDigits) {
  for (const int d : {1, 3, 5}) {
    const AskedFunctions asked{.d = d, .length = 6, .samples = 20};
    const Dataset set = function_samples(asked);
    const TaskText& text = *task_for(asked).text();
    for (int64_t index = 0; index < set.samples; ++index) {
      const std::span<const float> drawn(set.inputs.data() + index * 12 * d, size_t{12} * d);
      std::string line, labels;
      for (int i = 0; i < 6; ++i) {
        const std::string label = i == 5 ? "?" : text.node(-1, drawn.subspan((2 * i + 1) * d, d));
        line += (i > 0 ? ", " : "") + text.node(-1, drawn.subspan(2 * i * d, d)) + " " + label;
        if (i < 5) {
          EXPECT_EQ(label, set.labels[index * 12 + 2 * i] == 1 ? "1" : "0");
        }
      }
      EXPECT_EQ(text.length_of(line), 6);
      std::vector<float> read(drawn.size(), 7);
      text.read(line, 6, {.values = read, .tokens = {}, .targets = {}, .labels = {}});
      EXPECT_EQ(text.node(-1, std::span(read).last(d)), "?");
      read[11 * d] = drawn[11 * d];
      EXPECT_EQ(read, std::vector<float>(drawn.begin(), drawn.end())) << line;
    }
  }
  const TaskText& text = *task_for({.d = 3}).text();
  EXPECT_EQ(text.answers(std::vector<int32_t>{1, 0, 0, 1, -1, 1}), "10?");
  EXPECT_EQ(text.form(),
            "points of 3 digits and their labels, ? for the last, as 111 1, 000 0, 111 ?");
}

TEST(InContextFunction, RefusesTextsOfOtherForms) {
  const TaskText& text = *task_for({.d = 3}).text();
  std::vector<float> values(18);
  const SampleRoom room{.values = values, .tokens = {}, .targets = {}, .labels = {}};
  for (const char* right : {"101 1, 011 0, 110 ?", "1011,0110,110?", " 1 0 1 1 ,\t011 0,110? "}) {
    text.read(right, 3, room);
    EXPECT_EQ(values,
              (std::vector<float>{1, -1, 1, 1, 0, 0, -1, 1, 1, -1, 0, 0, 1, 1, -1, 0, 0, 0}))
        << right;
  }
  for (const char* wrong :
       {"", "101 1, 110 ?", "101 1, 011 0, 110 ?,", "101 1, 011 0, 110 1", "101 ?, 011 0, 110 ?",
        "101 1, 011 2, 110 ?", "101 1, 01 0, 110 ?", "101 1, 0110 0, 110 ?", "1?1 1, 011 0, 110 ?",
        "101 1, 011 0, 1?0 ?", "101 1, 011, 110 ?", "101 1, 011 0, 110", "101 1; 011 0; 110 ?"}) {
    EXPECT_THROW(text.read(wrong, 3, room), Error) << wrong;
  }
}

}  // namespace
}  // namespace posattn
