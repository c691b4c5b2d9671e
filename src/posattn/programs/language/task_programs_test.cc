// Programs for tasks that hold their numbers in another form: on the tasks' own samples, with the
// tasks' answers, or those of the learners that the tasks have as baselines.
#include <gtest/gtest.h>

#include <algorithm>

#include "posattn/evaluation/predict.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

using Values = std::vector<double>;

// A program's input and what it must answer on the processors from `first_read` on.
struct Case {
  Values input, answer;
  int first_read = 0;
};

Case counting(const Dataset& set, int64_t s) {
  const int64_t n = set.length, nodes = set.shape.real_nodes;
  Case found;
  for (int i = 0; i < n; ++i) {
    found.input.push_back(set.tokens[s * nodes + 1 + i]);
    for (int g = 0; g < 4; ++g) found.answer.push_back(set.targets[s * nodes + 1 + n + g]);
  }
  return found;
}

Case matching(const Dataset& set, int64_t s) {
  const auto tokens = set.tokens.begin() + s * set.length;
  const auto labels = set.labels.begin() + s * set.length;
  return {{tokens, tokens + set.length}, {labels, labels + set.length}};
}

Case averaging(const Dataset& set, int64_t s) {
  const int64_t n = set.length;
  Case found;
  for (int64_t i = 0; i < n; ++i) {
    const float* node = set.inputs.data() + (s * n + i) * (n + 1);
    found.input.push_back(node[0]);
    for (int j = 0; j < n; ++j) {
      if (node[1 + j] == 1) found.input.push_back(j);
    }
    found.answer.push_back(set.targets[s * n + i]);
  }
  return found;
}

// Bits [x | y], and the guesses of a learner.
Case learning(const Dataset& set, int64_t s, const char* task, const char* learner) {
  const int64_t n = set.length, d = set.shape.data_columns, inputs = set.shape.input_count();
  const auto values = std::span<const float>(set.inputs).subspan(s * inputs, inputs);
  std::vector<float> outputs(4 * n);
  const std::vector<Baseline> all = find_task(task, "d=" + std::to_string(d)).baselines();
  std::ranges::find(all, learner, &Baseline::name)
      ->predict(set.length, {.values = values, .tokens = {}}, outputs);
  Case found;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k <= d; ++k) found.input.push_back(values[2 * i * d + k] > 0 ? 1 : 0);
    found.answer.push_back(outputs[4 * i + 1]);
  }
  return found;
}

Case conjunctions(const Dataset& set, int64_t s) {
  return learning(set, s, "in-context-conjunction", "learner");
}
Case majorities(const Dataset& set, int64_t s) {
  return learning(set, s, "in-context-majority", "averaging");
}

// The last processor says the label, and whether it is open. Where it is, the learner says 0; it
// is not where the label follows, and then they agree.
Case parities(const Dataset& set, int64_t s) {
  const Case all = learning(set, s, "in-context-parity", "learner");
  Case last{all.input, Values(2 * all.answer.size()), set.length - 1};
  last.answer[last.answer.size() - 2] = all.answer.back();
  return last;
}

struct TaskProgram {
  const char *program, *task, *set;
  int length;
  Settings settings;
  Case (*make)(const Dataset& set, int64_t s);
  bool may_be_open = false;  // its second output says so
};

class TaskPrograms : public testing::TestWithParam<TaskProgram> {};

TEST_P(TaskPrograms, AnswerAsTheTaskDoes) {
  const TaskProgram& row = GetParam();
  const Dataset set = make_dataset({.task = &find_task(row.task, row.set),
                                    .length = row.length,
                                    .samples = 60,
                                    .range = training_range(1, false),
                                    .seed = 4});
  const StaticProgram program = library_program(row.program, row.length, row.settings);
  const Model model = compile(program);
  const size_t columns = program.outputs.size();
  int64_t open = 0;
  for (int64_t s = 0; s < set.samples; ++s) {
    const Case one = row.make(set, s);
    ASSERT_EQ(one.input.size(), program.inputs.size() * program.processors);
    const Values found = run_static<double>(program, one.input, 1);
    if (row.may_be_open && found.back() == 1) {
      EXPECT_EQ(one.answer[one.answer.size() - 2], 0);
      ++open;
      continue;
    }
    const std::vector<float> inputs(one.input.begin(), one.input.end());
    const std::vector<float> network = predict_rows(model, inputs, 1);
    for (size_t at = one.first_read * columns; at < found.size(); ++at) {
      ASSERT_NEAR(found[at], one.answer[at], 1e-6) << "sample " << s << ", output " << at;
      ASSERT_NEAR(network[at], one.answer[at], 1e-5);
    }
  }
  EXPECT_LT(open, set.samples / 2);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, TaskPrograms,
    testing::Values(
        TaskProgram{"contextual-counting", "contextual-counting", "", 24, {}, counting},
        TaskProgram{"match-two", "match-two", "modulus=9", 8, {}, matching},
        TaskProgram{"match-two", "match-two", "modulus=33", 32, {{"M", 33}}, matching},
        TaskProgram{"match-three", "match-three", "modulus=9", 8, {}, matching},
        TaskProgram{"sparse-average", "sparse-average", "", 8, {}, averaging},
        TaskProgram{"sparse-average", "sparse-average", "q=1", 5, {{"q", 1}}, averaging},
        TaskProgram{
            "in-context-conjunction", "in-context-conjunction", "d=5", 16, {}, conjunctions},
        TaskProgram{"in-context-majority", "in-context-majority", "d=5", 16, {}, majorities},
        TaskProgram{"in-context-parity", "in-context-parity", "d=4", 9, {}, parities, true}));

}  // namespace
}  // namespace posattn
