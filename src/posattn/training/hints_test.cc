#include "posattn/training/hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/training/recording.h"
#include "posattn/training/run.h"
#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;

RunConfig hinted(const std::string& task, int length, int depth = 0,
                 const std::string& hints = "task") {
  RunConfig config = small_run();
  config.task = task;
  config.length = length;
  config.depth = depth;
  config.hints = hints;
  take_hints(config);
  validate(config);
  return config;
}

posattn::Run ended_run(const RunConfig& config, int threads = 1) {
  posattn::Run run(config, threads);
  while (!run.finished()) run.advance_epoch();
  EXPECT_EQ(run.divergence(), "");
  return run;
}

bool same_weights(const Parameters<float>& a, const Parameters<float>& b) {
  return std::ranges::equal(a.values(), b.values());
}

TEST(Hints, AreTheWordsAfterEachRound) {
  const RunConfig config = hinted("cumulative-sum", 4, 3);  // rounds 1, 2, 2 of two
  Dataset set = std::move(training_data(config, 1, 1).front());
  Hints(config).add_labels(set, 2);
  ASSERT_EQ(set.hints.size(), set.samples * 3 * 4u);
  for (int64_t s = 0; s < set.samples; ++s) {
    const float* x = set.inputs.data() + s * 4;
    const float* label = set.hints.data() + s * 12;
    for (const int reach : {2, 4, 4}) {  // a processor has the sum of so many
      for (int i = 0; i < 4; ++i) {
        float sum = 0;
        for (int j = std::max(0, i - reach + 1); j <= i; ++j) sum += x[j];
        EXPECT_NEAR(*label++, sum, 1e-6);
      }
    }
  }
}

// Of the program's own words: not the bit by which sorting knows its partner.
TEST(Hints, AreThoseThatTheProgramStillNeeds) {
  EXPECT_THAT(Hints(hinted("sort", 8)).columns(), AllOf(SizeIs(6), Each(1)));
  const std::vector<int> columns =
      Hints(hinted("cumulative-max-subarray", 8)).columns();  // prefix sums, then their minima too
  EXPECT_THAT(columns, ElementsAre(1, 1, 1, 2, 2, 2, 1, 1, 1, 1));
  const std::vector<int> half = Hints(hinted("cumulative-max-subarray", 8, 5)).columns();
  EXPECT_THAT(half, ElementsAre(1, 2, 2, 1, 1));
}

TEST(Hints, SettleTheProgramItsHashAndTheDepth) {
  const RunConfig config = hinted("cumulative-min", 8);
  EXPECT_EQ(config.hints, "cumulative-min");
  EXPECT_EQ(config.depth, 3);
  EXPECT_TRUE(is_file_hash(config.hints_hash));
  EXPECT_EQ(hinted("cumulative-min", 8, 5).depth, 5);
  RunConfig none = small_run();
  take_hints(none);
  EXPECT_EQ(none, small_run());
}

TEST(Hints, RunsHaveTheSameBitsForAnyThreadsAndLearn) {
  RunConfig config = hinted("cumulative-sum", 4);
  config.epochs = 60;
  config.fresh = true;
  const posattn::Run one = ended_run(config), three = ended_run(config, 3);
  EXPECT_TRUE(same_weights(one.state().parameters, three.state().parameters));
  const auto error = [&](const RunState& state) {
    const Hints hints(config);
    Dataset set = std::move(validation_data(config, 1).front());
    hints.add_labels(set, 1);
    return hints.error(model_spec(config), state.parameters, set);
  };
  EXPECT_LT(error(one.state()), 0.3 * error(initial_state(config)));
}

// Of maps that read nothing it is the mean square of the labels.
TEST(Hints, ErrorIsTheDistanceFromTheLabels) {
  for (const Wrap wrap : {Wrap::none, Wrap::scale}) {
    RunConfig config = hinted("cumulative-max-subarray", 4);
    config.wrap = wrap;
    Dataset set = std::move(validation_data(config, 1).front());
    const Hints hints(config);
    hints.add_labels(set, 1);
    double square = 0;
    for (const float label : set.hints) square += double{label} * label;
    RunState state = initial_state(config);
    for (const TensorInfo& tensor : state.parameters.layout().tensors()) {
      if (tensor.of_training) std::ranges::fill(state.parameters.slice(tensor), 0.0F);
    }
    EXPECT_NEAR(hints.error(model_spec(config), state.parameters, set),
                square / static_cast<double>(set.hints.size()), 1e-9);
  }
}

TEST(Hints, RunsGoOnFromACheckpointToTheBit) {
  RunConfig config = hinted("sort", 4);
  config.fresh = true;
  config.clip = 0.5;
  const TemporaryFolder folder;
  const auto file = folder.path() / "checkpoint.safetensors";
  posattn::Run first(config, 1);
  for (int epoch = 0; epoch < 3; ++epoch) first.advance_epoch();
  save_checkpoint(file, config, first.state());
  posattn::Run second(config, 1, load_checkpoint(file, config));
  while (!second.finished()) second.advance_epoch();
  const posattn::Run straight = ended_run(config);
  EXPECT_TRUE(same_weights(second.state().parameters, straight.state().parameters));
  EXPECT_TRUE(same_weights(second.state().optimiser.second_moment,
                           straight.state().optimiser.second_moment));
}

TEST(Hints, AreNoPartOfTheModel) {
  const RunConfig config = hinted("sort", 4);
  posattn::Run run(config, 1);
  const Model model = run.model();
  EXPECT_EQ(model.spec, model_spec(config));
  EXPECT_EQ(model.parameters.layout().tensors().size(),
            ParameterLayout(model.spec).tensors().size());
  for (const TensorInfo& tensor : model.parameters.layout().tensors()) {
    EXPECT_TRUE(
        std::ranges::equal(model.parameters.slice(tensor), run.state().parameters[tensor.name]));
  }
  EXPECT_EQ(model_from_bytes(model_bytes(model), "the model").spec, model.spec);
  std::vector<double> tested;
  for (int epoch = 0; epoch < 3; ++epoch) {
    const auto epoch_tests = run.advance_epoch()->tests;
    for (const Measurement& row : epoch_tests) {
      if (row.metric == "hint_mse") tested.push_back(row.value);
    }
  }
  EXPECT_THAT(tested, AllOf(SizeIs(2), Each(Gt(0))));  // at c = 1 and 3
}

// Without hints this model is the block executor's too.
TEST(Hints, OfWeightZeroLeaveTheRunAlone) {
  RunConfig config = hinted("cumulative-sum", 4);
  config.join = Join::add;
  config.clip = 0.1;
  config.weight_decay = 0.01;
  config.hint_weight = 0;
  const posattn::Run read = ended_run(config);
  config.hint_weight = 1;
  const posattn::Run taught = ended_run(config);
  config.hints = config.hints_hash = "";
  const posattn::Run plain = ended_run(config);
  EXPECT_TRUE(same_weights(read.model().parameters, plain.model().parameters));
  EXPECT_FALSE(same_weights(taught.model().parameters, plain.model().parameters));
  EXPECT_EQ(read.state().validation_loss, plain.state().validation_loss);
}

TEST(Hints, StartFromAModelToo) {
  const TemporaryFolder folder;
  RunConfig plain = small_run();
  const std::string file = (folder.path() / "m.safetensors").string();
  save_model(file, posattn::Run(plain, 1).model());
  RunConfig config = small_run();
  config.from = file;
  config.hints = "task";
  take_start(config, {});
  take_hints(config);
  validate(config);
  const posattn::Run run(config, 1);
  EXPECT_TRUE(same_weights(run.model().parameters, load_model(file).parameters));
  EXPECT_TRUE(std::ranges::any_of(run.state().parameters["hints.0.weight"],
                                  [](float weight) { return weight != 0; }));
}

TEST(Hints, AnotherTextIsRefused) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "mine.par").string();
  const std::string text = "word x : real = input\nreceive y = x from i - 1\nx = x + y\noutput x\n";
  write_file(file, std::as_bytes(std::span(text)));
  RunConfig config = hinted("cumulative-sum", 4, 0, file);
  EXPECT_EQ(config.depth, 1);
  const std::string other = text + "# another\n";
  write_file(file, std::as_bytes(std::span(other)));
  try {
    take_hints(config);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_THAT(error.what(), HasSubstr("hints-hash = " + config.hints_hash));
  }
  EXPECT_THROW(validate(config), Error);
}

TEST(Hints, WhatCannotBeTaughtIsRefused) {
  const auto refused = [](const char* part, auto change) {
    RunConfig config = small_run();
    config.length = 8;
    config.hints = "task";
    try {
      change(config);
      take_hints(config);
      validate(config);
      ADD_FAILURE() << "not refused: " << part;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  };
  refused("variable-length", [](RunConfig& c) { c.variable_length = true; });
  refused("loops = 2", [](RunConfig& c) { c.loops = "2"; });
  refused("device = cuda", [](RunConfig& c) { c.device = "cuda"; });
  refused("task k-hop", [](RunConfig& c) { c.task = "k-hop", c.integers = false; });
  refused("'path'", [](RunConfig& c) { c.task = "path"; });  // it has no program
  refused("16 processors with 1 inputs", [](RunConfig& c) { c.hints = "min-sum"; });
  refused("it does not take all real numbers", [](RunConfig& c) { c.hints = "automaton"; });
  refused("hint-weight", [](RunConfig& c) { c.hint_weight = -1; });
  refused("hint-weight = 2 without hints", [](RunConfig& c) { c.hints = "", c.hint_weight = 2; });
  refused("hints-hash without hints",
          [](RunConfig& c) { c.hints = "", c.hints_hash = "0123456789abcdef"; });
  RunConfig config = small_run();
  config.hints = "cumulative-sum";
  EXPECT_THROW(validate(config), Error);  // nobody has taken them
}

}  // namespace
}  // namespace posattn
