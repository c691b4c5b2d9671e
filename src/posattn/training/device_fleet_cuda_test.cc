#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/training/device_fleet.h"
#include "posattn/training/run.h"
#include "posattn/training/token_task_test.h"

namespace posattn {
namespace {

RunConfig tiny_run(int64_t seed) {
  RunConfig config = small_run();
  config.samples = 40;
  config.batch = 16;
  config.epochs = 3;
  config.seed = seed;
  config.device = "cuda";
  return config;
}

struct Trained {
  std::vector<std::vector<EpochRecord>> records;  // by slot
  std::vector<std::string> divergences;
  std::vector<RunState> states;
};

Trained train(const std::vector<DeviceRun>& runs) {
  DeviceFleet fleet(runs, 1);
  Trained result;
  result.records.resize(runs.size());
  result.divergences.resize(runs.size());
  while (!fleet.finished()) {
    for (const EpochEnd& end : fleet.advance()) {
      if (end.divergence.empty()) {
        result.records[end.slot].push_back(end.record);
      } else {
        result.divergences[end.slot] = end.divergence;
      }
    }
  }
  for (int slot = 0; slot < static_cast<int>(runs.size()); ++slot) {
    result.states.push_back(fleet.state(slot));
  }
  return result;
}

Trained train(const std::vector<RunConfig>& configs) {
  std::vector<DeviceRun> runs;
  for (const RunConfig& config : configs) runs.push_back({config, initial_state(config)});
  return train(runs);
}

std::vector<float> numbers(const RunState& state) {
  std::vector<float> all;
  for (const Parameters<float>* part :
       {&state.parameters, &state.optimiser.first_moment, &state.optimiser.second_moment}) {
    all.insert(all.end(), part->values().begin(), part->values().end());
  }
  return all;
}

std::vector<float> outputs(const RunConfig& config, const Parameters<float>& parameters) {
  const Dataset set = std::move(validation_data(config, 1).back());
  std::vector<float> values(set.targets.size());
  Network(model_spec(config))
      .forward(parameters, {set.inputs, {}, set.samples, set.shape.real_nodes}, values);
  return values;
}

void expect_like_cpu(const RunConfig& config, const Trained& trained, int slot) {
  posattn::Run run(config, 1);
  for (const EpochRecord& record : trained.records[slot]) {
    const std::optional<EpochRecord> expected = run.advance_epoch();
    ASSERT_TRUE(expected.has_value());
    EXPECT_EQ(record.epoch, expected->epoch);
    EXPECT_EQ(record.step, expected->step);
    EXPECT_EQ(record.lr, expected->lr);
    EXPECT_NEAR(record.train_loss, expected->train_loss, 1e-4 * expected->train_loss);
    ASSERT_EQ(record.validation_loss.has_value(), expected->validation_loss.has_value());
    const double validation = expected->validation_loss.value_or(0);
    EXPECT_NEAR(record.validation_loss.value_or(0), validation, 1e-4 * validation);
  }
  EXPECT_TRUE(run.finished());
  EXPECT_EQ(trained.states[slot].epoch, run.state().epoch);
  EXPECT_EQ(trained.states[slot].optimiser.step, run.state().optimiser.step);
  EXPECT_THAT(
      outputs(config, trained.states[slot].parameters),
      testing::Pointwise(testing::FloatNear(1e-3f), outputs(config, run.state().parameters)));
}

TEST(DeviceFleet, TrainsLikeTheCpuEngine) {
  std::vector<RunConfig> configs = {tiny_run(0), tiny_run(1), tiny_run(2)};
  configs[1].task = "sort";
  configs[1].samples = 70;  // five steps instead of three
  configs[1].epochs = 2;
  configs[2].optimiser = "adamw";
  configs[2].weight_decay = 0.1;
  configs[2].clip = 0.5;
  configs[2].schedule = "warmup-linear";
  configs[2].warmup_steps = 4;
  const Trained trained = train(configs);
  for (int slot = 0; slot < 3; ++slot) {
    SCOPED_TRACE(slot);
    expect_like_cpu(configs[slot], trained, slot);
  }
}

TEST(DeviceFleet, VariableLengthTrainsLikeTheCpuEngine) {
  for (const char* architecture : {"positional", "standard"}) {
    std::vector<RunConfig> configs = {tiny_run(3), tiny_run(4)};
    for (RunConfig& config : configs) {
      config.architecture = architecture;
      config.variable_length = true;
      config.epochs = 2;
    }
    configs[1].variable_length = false;
    const Trained trained = train(configs);
    for (int slot = 0; slot < 2; ++slot) expect_like_cpu(configs[slot], trained, slot);
  }
}

TEST(DeviceFleet, TokensTrainLikeOnTheCpu) {
  std::vector<RunConfig> configs(2, small_token_run());
  configs[0].device = configs[1].device = "cuda";
  configs[1].seed = 1;
  configs[1].variable_length = true;
  DeviceFleet fleet(
      {{configs[0], initial_state(configs[0])}, {configs[1], initial_state(configs[1])}}, 1);
  EXPECT_STREQ(fleet.engine(), "general");
  std::vector<EpochRecord> records[2];
  while (records[0].size() < 3 || records[1].size() < 3) {
    for (const EpochEnd& end : fleet.advance()) records[end.slot].push_back(end.record);
  }
  for (int slot = 0; slot < 2; ++slot) {
    posattn::Run run(configs[slot], 1);
    double before = 10;
    for (int epoch = 0; epoch < 3; ++epoch) {
      const double expected = run.advance_epoch()->train_loss;
      EXPECT_NEAR(records[slot][epoch].train_loss, expected, 1e-4 * expected);
      EXPECT_LT(expected, before);
      before = expected;
    }
  }
}

TEST(DeviceFleet, LettersAndNumbersTrainLikeOnTheCpu) {
  for (const char* architecture : {"two-streams-gated", "two-streams-linear", "standard"}) {
    SCOPED_TRACE(architecture);
    RunConfig config = tiny_run(2);
    config.task = "recall";
    config.architecture = architecture;
    config.length = 4;
    config.depth = 2;
    if (config.architecture == "standard") config.wrap = Wrap::scale;
    config.epsilon = 0;
    config.clip_relative = 2;
    const Trained trained = train({config});
    posattn::Run run(config, 1);
    for (const EpochRecord& record : trained.records[0]) {
      const double expected = run.advance_epoch()->train_loss;
      EXPECT_NEAR(record.train_loss, expected, 1e-3 * expected);
    }
    EXPECT_TRUE(run.finished());
  }
}

TEST(DeviceFleet, FreshSamplesAndDecayOfMapsAreThoseOfTheCpu) {
  std::vector<RunConfig> configs = {tiny_run(5), tiny_run(6)};
  configs[0].fresh = true;
  configs[1].optimiser = "adamw";
  configs[1].weight_decay = 0.5;
  configs[1].decay = "linear";
  const Trained trained = train(configs);
  for (int slot = 0; slot < 2; ++slot) expect_like_cpu(configs[slot], trained, slot);
}

TEST(DeviceFleet, AbsentBiasesStayZero) {
  for (const int64_t width : {8, 64}) {  // in engines of both kinds
    RunConfig config = tiny_run(3);
    config.architecture = "homogeneous";
    config.width = config.mlp_width = width;
    config.depth = 2;
    config.epochs = 1;
    const Trained trained = train({config});
    expect_like_cpu(config, trained, 0);
    int absent = 0;
    for (const TensorInfo& tensor : trained.states[0].parameters.layout().tensors()) {
      if (tensor.trained) continue;
      ++absent;
      EXPECT_THAT(trained.states[0].parameters.slice(tensor), testing::Each(0.0f)) << tensor.name;
    }
    EXPECT_EQ(absent, 2 + 2 * 4);  // both ends; value, output and two maps of each layer
  }
}

TEST(DeviceFleet, APlateauLowersTheRateAsOnTheCpu) {
  RunConfig config = tiny_run(5);
  config.epochs = 5;
  config.plateau_patience = 0;
  config.plateau_threshold = 0.9;  // hardly anything counts as better
  const Trained trained = train({config});
  expect_like_cpu(config, trained, 0);
  EXPECT_LT(trained.records[0].back().lr, config.lr);
}

TEST(DeviceFleet, ARunDependsNeitherOnItsFleetNorOnItsSlot) {
  const std::vector<float> alone = numbers(train({tiny_run(1)}).states[0]);
  RunConfig longer = tiny_run(7);
  longer.samples = 60;
  RunConfig clipped = tiny_run(8);
  clipped.clip = 0.1;
  const Trained together = train({longer, clipped, tiny_run(1), tiny_run(1)});
  EXPECT_EQ(numbers(together.states[2]), alone);
  EXPECT_EQ(numbers(together.states[3]), alone);
}

TEST(DeviceFleet, ADivergedRunRestsAtItsLastGoodStateAndTheOthersGoOn) {
  RunConfig bad = tiny_run(0);
  bad.lr = 1e25;
  bad.schedule = "constant";
  const Trained trained = train({tiny_run(1), bad});
  EXPECT_EQ(numbers(trained.states[0]), numbers(train({tiny_run(1)}).states[0]));
  EXPECT_EQ(trained.divergences[0], "");
  EXPECT_THAT(trained.divergences[1], testing::StartsWith("the loss became "));
  EXPECT_THAT(trained.divergences[1], testing::EndsWith(" in step 2 in epoch 1"));
  EXPECT_EQ(trained.states[1].epoch, 0);
  EXPECT_EQ(numbers(trained.states[1]), numbers(initial_state(bad)));
}

TEST(DeviceFleet, AResumedRunGoesOnBitForBit) {
  const std::vector<RunConfig> configs = {tiny_run(1), tiny_run(2)};
  const Trained straight = train(configs);
  std::vector<DeviceRun> half;
  {
    std::vector<DeviceRun> runs;
    for (const RunConfig& config : configs) runs.push_back({config, initial_state(config)});
    DeviceFleet fleet(runs, 1);
    fleet.advance();
    for (int slot = 0; slot < 2; ++slot) half.push_back({configs[slot], fleet.state(slot)});
  }
  EXPECT_EQ(half[0].state.epoch, 1);
  const Trained resumed = train(half);
  for (int slot = 0; slot < 2; ++slot) {
    EXPECT_EQ(numbers(resumed.states[slot]), numbers(straight.states[slot]));
    EXPECT_EQ(resumed.records[slot].back().train_loss, straight.records[slot].back().train_loss);
  }
}

TEST(DeviceFleet, AStoppedEpochLeavesTheStateBeforeIt) {
  const RunConfig config = tiny_run(1);
  DeviceFleet fleet({{config, initial_state(config)}}, 1);
  fleet.advance();
  const std::vector<float> after_one = numbers(fleet.state(0));
  std::atomic<bool> stop = true;
  EXPECT_TRUE(fleet.advance(&stop).empty());
  EXPECT_EQ(numbers(fleet.state(0)), after_one);
  EXPECT_EQ(fleet.state(0).epoch, 1);
}

TEST(DeviceFleet, AFinishedRunOnlyRests) {
  RunConfig config = tiny_run(1);
  const RunState done = std::move(train({config}).states[0]);
  EXPECT_EQ(done.epoch, config.epochs);
  const Trained again =
      train(std::vector<DeviceRun>{{config, done}, {tiny_run(2), initial_state(tiny_run(2))}});
  EXPECT_EQ(numbers(again.states[0]), numbers(done));
  EXPECT_TRUE(again.records[0].empty());
  EXPECT_EQ(again.records[1].size(), 3u);
}

TEST(DeviceFleet, ARunThatIsPutToRestEndsAndTheOthersGoOn) {
  const std::vector<RunConfig> configs = {tiny_run(1), tiny_run(2)};
  const Trained straight = train(configs);
  DeviceFleet fleet(
      {{configs[0], initial_state(configs[0])}, {configs[1], initial_state(configs[1])}}, 1);
  fleet.advance();
  fleet.rest(0);
  int ends = 0;
  while (!fleet.finished()) ends += static_cast<int>(fleet.advance().size());
  EXPECT_EQ(ends, 2);
  EXPECT_EQ(numbers(fleet.state(1)), numbers(straight.states[1]));
}

TEST(DeviceFleet, MemoryGrowsWithRunsAndData) {
  const int64_t one = DeviceFleet::bytes_needed({tiny_run(0)});
  EXPECT_GT(one, 0);
  EXPECT_GT(DeviceFleet::bytes_needed({tiny_run(0), tiny_run(1)}), one);
  RunConfig large = tiny_run(0);
  large.samples = 1000000;
  EXPECT_GT(DeviceFleet::bytes_needed({large}), one + 999960 * 24);
  EXPECT_GT(DeviceFleet::bytes_free(), one);
}

TEST(DeviceFleet, RunsShareAFleetWhereTheirShapesAgree) {
  RunConfig other = tiny_run(1);
  other.task = "sort";
  other.lr = 1;
  other.samples = 100;
  EXPECT_TRUE(DeviceFleet::compatible(tiny_run(0), other));
  const auto differs = [](auto change) {
    RunConfig changed = tiny_run(0);
    change(changed);
    return !DeviceFleet::compatible(tiny_run(0), changed);
  };
  EXPECT_TRUE(differs([](RunConfig& c) { c.architecture = "standard"; }));
  EXPECT_TRUE(differs([](RunConfig& c) { c.batch = 10; }));
  EXPECT_TRUE(differs([](RunConfig& c) { c.precision = "tf32"; }));
  EXPECT_TRUE(differs([](RunConfig& c) { c.path = "plain"; }));
  EXPECT_TRUE(differs([](RunConfig& c) { c.task = "min-sum"; }));
}

}  // namespace
}  // namespace posattn
