#include "posattn/training/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/limits.h"
#include "posattn/training/token_task_test.h"

namespace posattn {
namespace {

std::vector<float> weights(const Run& run) {
  const auto values = run.state().parameters.values();
  return {values.begin(), values.end()};
}

std::vector<float> train(const RunConfig& config, int threads = 1) {
  posattn::Run run(config, threads);
  while (!run.finished()) {
    if (!run.advance_epoch()) break;
  }
  EXPECT_EQ(run.divergence(), "");
  EXPECT_EQ(run.state().epoch, config.epochs);
  return weights(run);
}

TEST(Run, RecordsEpochsAndEvaluatesWhenDue) {
  posattn::Run run(small_run(), 1);
  EXPECT_EQ(run.steps_per_epoch(), 3);
  for (int64_t epoch = 1; epoch <= 6; ++epoch) {
    EXPECT_FALSE(run.finished());
    const auto record = run.advance_epoch();
    ASSERT_TRUE(record.has_value());
    EXPECT_EQ(record->epoch, epoch);
    EXPECT_EQ(record->step, 3 * epoch);
    EXPECT_GT(record->train_loss, 0);
    EXPECT_EQ(record->lr, 3e-3);
    EXPECT_EQ(record->validation_loss.has_value(), epoch % 2 == 0) << epoch;
    EXPECT_EQ(tested_values(record->tests, "c").size(), epoch % 3 == 0 ? 2u : 0u) << epoch;
  }
  EXPECT_TRUE(run.finished());
}

TEST(Run, EvaluatesAtTheEndWhateverTheIntervals) {
  RunConfig config = small_run();
  config.epochs = 2;
  config.validate_every = config.test_every = 0;
  posattn::Run run(config, 1);
  EXPECT_FALSE(run.advance_epoch()->validation_loss.has_value());
  const auto last = run.advance_epoch();
  EXPECT_TRUE(last->validation_loss.has_value());
  EXPECT_THAT(tested_values(last->tests, "c"), ::testing::ElementsAre(1, 3));
}

// A model with f(c x) = c f(x), whose gradients have degree 2: four times the numbers are another
// unit of the same data, and 2^k costs no rounding.
TEST(Run, DoesNotSeeTheUnitWithoutAbsoluteNumbers) {
  const struct {
    const char *architecture, *task;
  } models[] = {{"homogeneous", "sort"},
                {"scale-free", "sort"},
                {"two-streams", "recall"},
                {"two-streams-gated", "recall"},
                {"two-streams-linear", "pointer"}};
  for (const auto& model : models) {
    const auto& architecture = model.architecture;
    const auto trained = [&](double range, double epsilon, double clip, double clip_relative) {
      RunConfig config = small_run();
      config.architecture = model.architecture;
      config.task = model.task;
      config.range = range;
      config.epsilon = epsilon;
      config.clip = clip;
      config.clip_relative = clip_relative;
      return train(config);
    };
    constexpr double low = 0.5;  // so that it limits the gradient of these few steps
    const std::vector<float> plain = trained(2, 0, 0, 0), relative = trained(2, 0, 0, low);
    EXPECT_EQ(plain, trained(8, 0, 0, 0)) << architecture;
    EXPECT_EQ(relative, trained(8, 0, 0, low)) << architecture;
    EXPECT_NE(plain, relative) << architecture;
    EXPECT_NE(trained(2, 1e-8, 0, 0), trained(8, 1e-8, 0, 0)) << architecture;
    EXPECT_NE(trained(2, 0, 0.5, 0), trained(8, 0, 0.5, 0)) << architecture;
  }
}

TEST(Run, IsTestedAtLengthsToo) {
  RunConfig config = small_run();
  config.epochs = 1;
  config.variable_length = true;
  config.test_lengths = "1,3";
  validate(config);
  const auto last = posattn::Run(config, 1).advance_epoch();
  EXPECT_THAT(tested_values(last->tests, "length"), ::testing::ElementsAre(1, 3));
  EXPECT_THAT(tested_values(last->tests, "c"), ::testing::ElementsAre(1, 3));
  config.test_lengths = "1,4";
  EXPECT_THROW(validate(config), Error);
}

// From the longest on it is training at one length, to the bit.
TEST(Run, TrainsAndTestsFromTheShortestLengthOn) {
  RunConfig config = small_run();
  const auto trained = [&](int shortest) {
    config.variable_length = shortest >= 0;
    config.shortest_length = std::max(shortest, 0);
    validate(config);
    posattn::Run run(config, 1);
    std::vector<float> results;
    while (!run.finished()) {
      const auto epoch = run.advance_epoch();
      for (const Measurement& test : epoch->tests) {
        results.push_back(static_cast<float>(test.value));
      }
    }
    EXPECT_EQ(run.model().origin.shortest_length, config.shortest_length);
    results.push_back(static_cast<float>(*run.state().validation_loss));
    std::ranges::copy(weights(run), std::back_inserter(results));
    return results;
  };
  EXPECT_EQ(trained(3), trained(-1));
  EXPECT_EQ(trained(1), trained(0));
  EXPECT_NE(trained(2), trained(1));
  EXPECT_NE(trained(2), trained(3));
}

// A task without the scales as an axis is not tested at them.
TEST(Run, IsTestedAlongAnAxisOfItsTask) {
  RunConfig config = small_token_run();
  config.epochs = 1;
  config.test_axis = "first=0,3";
  validate(config);
  const auto last = posattn::Run(config, 1).advance_epoch();
  EXPECT_THAT(tested_axes(last->tests), ::testing::ElementsAre("first"));
  EXPECT_THAT(tested_values(last->tests, "first"), ::testing::ElementsAre(0, 3));
  EXPECT_EQ(loss_among(last->tests).name, "cross_entropy");
  for (const char* tests : {"first", "first=", "second=1", "c=1", "length=4"}) {
    config.test_axis = tests;
    try {
      validate(config);
      ADD_FAILURE() << "accepted " << tests;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration) << tests;
    }
  }
}

TEST(Run, SameSeedGivesTheSameBitsForAnyThreads) {
  for (const char* architecture : {"positional", "standard"}) {
    RunConfig config = small_run();
    config.architecture = architecture;
    config.epochs = 3;
    const std::vector<float> one = train(config, 1);
    EXPECT_EQ(train(config, 1), one);
    EXPECT_EQ(train(config, 2), one);
    EXPECT_EQ(train(config, 3), one);
    config.seed = 1;
    EXPECT_NE(train(config), one);
  }
}

TEST(Run, ChangingThreadsOnTheWayChangesNothing) {
  const RunConfig config = small_run();
  posattn::Run run(config, 1);
  int threads = 1;
  while (!run.finished()) {
    run.set_threads(threads++ % 3 + 1);
    ASSERT_TRUE(run.advance_epoch().has_value());
  }
  EXPECT_EQ(weights(run), train(config));
}

TEST(Run, FreshSamplesAreOthersInEveryEpochAndResumeAlike) {
  RunConfig config = small_run();
  config.fresh = true;
  config.epochs = 3;
  const std::vector<float> whole = train(config);
  RunConfig same = config;
  same.fresh = false;
  EXPECT_NE(whole, train(same));
  same.epochs = config.epochs = 1;  // the first epoch has the same samples
  EXPECT_EQ(train(config), train(same));
  posattn::Run first(config, 1);
  first.advance_epoch();
  config.epochs = 3;
  posattn::Run second(config, 1, first.state());
  while (!second.finished()) second.advance_epoch();
  EXPECT_EQ(weights(second), whole);
}

TEST(Run, DataAndWeightsHaveSeedsOfTheirOwn) {
  RunConfig config = small_run();
  config.seed = 4;
  const std::vector<float> both = train(config);
  RunConfig spelled_out = config;
  spelled_out.seed = 9;
  spelled_out.data_seed = spelled_out.weight_seed = 4;
  EXPECT_EQ(train(spelled_out), both);
  const std::vector<float> start = weights(posattn::Run(config, 1));
  config.data_seed = 5;
  EXPECT_EQ(weights(posattn::Run(config, 1)), start);
  EXPECT_NE(train(config), both);
  config.data_seed = -1;
  config.weight_seed = 5;
  EXPECT_NE(weights(posattn::Run(config, 1)), start);
}

TEST(Run, ARestoredRunGoesOnBitForBit) {
  const RunConfig config = small_run();
  posattn::Run first(config, 1);
  for (int i = 0; i < 3; ++i) first.advance_epoch();
  posattn::Run second(config, 1);
  second.restore(first.state());
  while (!second.finished()) second.advance_epoch();
  EXPECT_EQ(weights(second), train(config));
}

TEST(Run, AStoppedEpochLeavesTheStateBeforeIt) {
  const RunConfig config = small_run();
  posattn::Run run(config, 1);
  run.advance_epoch();
  const std::vector<float> before = weights(run);
  std::atomic<bool> stop = true;
  EXPECT_FALSE(run.advance_epoch(&stop).has_value());
  EXPECT_FALSE(run.finished());
  EXPECT_EQ(weights(run), before);
  EXPECT_EQ(run.state().epoch, 1);
  EXPECT_EQ(run.state().optimiser.step, 3);
  while (!run.finished()) run.advance_epoch();
  EXPECT_EQ(weights(run), train(config));
}

TEST(Run, ADivergedRunStopsAtItsLastGoodState) {
  RunConfig config = small_run();
  config.lr = 1e25;
  config.schedule = "constant";
  posattn::Run run(config, 1);
  while (!run.finished()) run.advance_epoch();
  EXPECT_THAT(run.divergence(), ::testing::HasSubstr("in epoch"));
  EXPECT_LT(run.state().epoch, config.epochs);
  for (const float value : weights(run)) ASSERT_TRUE(std::isfinite(value));
}

TEST(Run, LearnsInBothArchitectures) {
  for (const char* architecture : {"positional", "standard"}) {
    RunConfig config = small_run();
    config.architecture = architecture;
    config.samples = 200;
    config.epochs = 30;
    posattn::Run run(config, 1);
    const double first = run.advance_epoch()->train_loss;
    double last = first;
    while (!run.finished()) last = run.advance_epoch()->train_loss;
    EXPECT_LT(last, 0.3 * first) << architecture;
  }
}

TEST(Run, VariableLengthWeightDecayClippingAndWarmupWorkTogether) {
  RunConfig config = small_run();
  config.variable_length = true;
  config.optimiser = "adamw";
  config.weight_decay = 0.1;
  config.clip = 0.5;
  config.schedule = "warmup-linear";
  config.warmup_steps = 3;
  posattn::Run run(config, 1);
  EXPECT_EQ(run.steps_per_epoch(), 3);  // 17, 17 and 16 samples of lengths 1, 2, 3
  const auto first = run.advance_epoch();
  EXPECT_DOUBLE_EQ(first->lr, config.lr * 2 / 3);
  double last_rate = 0;
  while (!run.finished()) last_rate = run.advance_epoch()->lr;
  EXPECT_DOUBLE_EQ(last_rate, config.lr / 15);
  EXPECT_TRUE(run.state().best_validation_loss.has_value());
  EXPECT_LE(*run.state().best_validation_loss, *run.state().validation_loss);
}

TEST(Run, ThePlateauScheduleSeesTheSummedLosses) {
  RunConfig config = small_run();
  posattn::Run run(config, 1);
  const auto record = run.advance_epoch();
  EXPECT_DOUBLE_EQ(run.state().schedule.best, record->train_loss * 3);
}

TEST(Run, TheModelSaysWhatItWasTrainedOn) {
  RunConfig config = small_run();
  config.range = 3;
  const posattn::Run run(config, 1);
  const Model model = run.model();
  EXPECT_EQ(model.spec, model_spec(config));
  EXPECT_EQ(model.origin.task, "cumulative-sum");
  EXPECT_EQ(model.origin.length, 3);
  EXPECT_EQ(model.origin.range, 3);
}

TEST(EpochRecord, OneLineOfJsonAndBack) {
  EpochRecord record;
  record.epoch = 7;
  record.step = 21;
  record.train_loss = 0.1;
  record.lr = 5e-4;
  record.seconds = 1.5;
  EXPECT_FALSE(nlohmann::json::parse(to_json(record)).contains("validation_loss"));
  record.validation_loss = 1.0 / 3;
  record.tests = {{Split::test, "c", 2, "mse", 0.25},
                  {Split::test, "c", 2, "accuracy", std::nan("")}};
  const std::string line = to_json(record);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const EpochRecord back = epoch_record_from_json(line);
  EXPECT_EQ(back.epoch, 7);
  EXPECT_EQ(back.step, 21);
  EXPECT_EQ(back.train_loss, 0.1);
  EXPECT_EQ(back.validation_loss, 1.0 / 3);
  ASSERT_EQ(back.tests.size(), 2u);
  EXPECT_EQ(back.tests[0], record.tests[0]);
  EXPECT_TRUE(std::isnan(back.tests[1].value));
  record.train_loss = infinity;
  record.validation_loss = -infinity;
  record.tests[0].value = infinity;
  EXPECT_THAT(to_json(record), ::testing::HasSubstr("\"train_loss\":\"inf\""));
  const EpochRecord infinite = epoch_record_from_json(to_json(record));
  EXPECT_EQ(infinite.train_loss, infinity);
  EXPECT_EQ(infinite.validation_loss, -infinity);
  EXPECT_EQ(infinite.tests[0].value, infinity);
}

TEST(EpochRecord, ABadLineSaysWhichKeyIsWrongAndWhere) {
  const std::string good = R"({"epoch":1,"step":2,"train_loss":0.5,"lr":0.1,"seconds":1,)"
                           R"("tests":[{"c":1,"mse":1,"mse_over_c2":1,"accuracy":1}]})";
  EXPECT_EQ(epoch_record_from_json(good).tests.size(), 2u);
  const auto message = [](const std::string& line) {
    try {
      epoch_record_from_json(line, "metrics.jsonl:7");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      return error.problem();
    }
    return std::string("accepted");
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    return message(std::string(good).replace(good.find(from), from.size(), to));
  };
  EXPECT_EQ(message("[]"), "metrics.jsonl:7: array");
  EXPECT_EQ(changed("\"lr\"", "\"rate\""), "metrics.jsonl:7: 'lr' is missing");
  EXPECT_EQ(changed("0.5", "\"low\""), "metrics.jsonl:7: 'train_loss' is \"low\"");
  EXPECT_EQ(changed("\"epoch\":1", "\"epoch\":1.5"), "metrics.jsonl:7: 'epoch' is 1.5");
  EXPECT_EQ(changed("\"mse\":1", "\"mse\":true"), "metrics.jsonl:7: tests: 'mse' is true");
  EXPECT_EQ(changed("\"mse\":1", "\"mse\":-1"), "metrics.jsonl:7: tests: mse -1 at c = 1");
  EXPECT_EQ(changed("[{", "[3,{"), "metrics.jsonl:7: tests: number");
}

// Lines of 0.1.0 are read and, as far as they can say it, written to the byte.
TEST(EpochRecord, KeepsTheFirstShape) {
  const std::string first =
      R"({"epoch":2,"step":6,"train_loss":0.5,"validation_loss":0.25,"tests":[)"
      R"({"c":1.0,"mse":0.75,"mse_over_c2":0.75,"accuracy":0.5},)"
      R"({"c":2.0,"mse":"inf","mse_over_c2":"inf","accuracy":0.0}],"lr":0.001,"seconds":1.5})";
  EpochRecord record = epoch_record_from_json(first);
  EXPECT_EQ(to_json(record), first);
  record.tests.push_back({Split::test, "length", 16, "mse", 3});
  const std::string line = to_json(record);
  EXPECT_THAT(line, ::testing::HasSubstr(R"("accuracy":0.0}],"rows":[{"split":"test",)"));
  EXPECT_EQ(epoch_record_from_json(line).tests, record.tests);
}

}  // namespace
}  // namespace posattn
