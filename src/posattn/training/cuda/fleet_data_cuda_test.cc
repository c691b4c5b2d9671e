#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/kernels/cuda/stream.h"
#include "posattn/training/batches.h"
#include "posattn/training/cuda/fleet_data.h"
#include "posattn/training/cuda/fleet_slot.h"
#include "posattn/training/run.h"
#include "posattn/training/token_task_test.h"

namespace posattn::cuda {
namespace {

enum class Kind { fixed, variable, tokens };

// Runs of several sizes and seeds; variable ones have several lengths each, and those of tokens.
std::vector<RunConfig> some_runs(Kind kind) {
  std::vector<RunConfig> configs(3, kind == Kind::tokens ? small_token_run() : small_run());
  for (int64_t i = 0; i < 3; ++i) {
    configs[i].seed = 7 + i;
    configs[i].samples = 50 + 27 * i;
    configs[i].variable_length = kind != Kind::fixed;
  }
  configs[2].data_seed = int64_t{1} << 40;  // both words of the key
  return configs;
}

std::vector<RunData> data_of(const std::vector<RunConfig>& configs) {
  std::vector<RunData> data;
  for (const RunConfig& config : configs) {
    data.push_back({config.data_seed_used(), training_data(config, 1, 1),
                    loss_mask(task_of(config), static_cast<int>(config.length))});
  }
  return data;
}

constexpr int64_t stride = 32;  // small_run has batches of 20

class FleetDataTest : public testing::TestWithParam<Kind> {
 protected:
  const std::vector<RunConfig> configs_ = some_runs(GetParam());
  const std::vector<RunData> runs_ = data_of(configs_);
  const ModelSpec spec_ = model_spec(configs_[0]);
  FleetData data_{spec_, stride, runs_};
  Stream stream_{Stream::with_default};

  // A column of the batches; empty where the task has none.
  template <class T>
  std::vector<T> host(const T* column) const {
    std::vector<T> values(column ? 3 * spec_.nodes() * stride : 0);
    if (column) {
      cudaMemcpy(values.data(), column, values.size() * sizeof(T), cudaMemcpyDeviceToHost);
    }
    return values;
  }

  void expect_order(int slot, int64_t epoch) {
    const std::vector<uint32_t> order = data_.order().download();
    int64_t first_index = 0;
    for (const SetPlace& set : data_.sets(slot)) {
      const auto begin = order.begin() + set.order;
      EXPECT_EQ(std::vector<uint32_t>(begin, begin + set.samples),
                shuffled(runs_[slot].seed, epoch, first_index, set.samples));
      first_index += set.samples;
    }
  }
};

TEST_P(FleetDataTest, TheOrderIsThatOfEpochBatches) {
  data_.shuffle({{0, 1}, {1, 1}, {2, 5}}, stream_.get());
  stream_.wait();
  expect_order(0, 1);
  expect_order(1, 1);
  expect_order(2, 5);
  data_.shuffle({{1, 2}}, stream_.get());  // the others stay as they are
  stream_.wait();
  expect_order(0, 1);
  expect_order(1, 2);
  expect_order(2, 5);
  data_.shuffle({}, stream_.get());
}

TEST_P(FleetDataTest, BatchesAreThoseOfEpochBatches) {
  data_.shuffle({{0, 1}, {1, 1}, {2, 1}}, stream_.get());
  std::vector<std::vector<StepPlan>> plans;
  std::vector<EpochBatches> batches;
  for (int slot = 0; slot < 3; ++slot) {
    const FleetSlot host({configs_[slot], initial_state(configs_[slot])}, data_.sets(slot));
    plans.emplace_back(host.steps_per_epoch());
    host.plan_epoch(spec_, plans.back().data());
    batches.emplace_back(runs_[slot].sets, configs_[slot].batch, runs_[slot].seed, 1);
    ASSERT_EQ(host.steps_per_epoch(), batches.back().count());
  }
  DeviceBuffer<StepPlan> current(3);
  for (int64_t step = 0; step < 3; ++step) {  // every run has three at least
    for (int slot = 0; slot < 3; ++slot) current.upload(&plans[slot][step], 1, slot);
    data_.gather(current.data(), stream_.get());
    stream_.wait();
    const std::vector<float> inputs = host(data_.inputs()), targets = host(data_.targets());
    const std::vector<int32_t> tokens = host(data_.tokens()), labels = host(data_.labels());
    for (int slot = 0; slot < 3; ++slot) {
      const Batch batch = batches[slot].gather(step);
      const SlotStep& said = plans[slot][step].step;
      EXPECT_EQ(said.samples, batch.samples);
      EXPECT_EQ(said.real_nodes, batch.real_nodes);
      EXPECT_FLOAT_EQ(said.loss_scale, 1.0f / static_cast<float>(batch.samples * batch.real_nodes *
                                                                 spec_.output_columns));
      for (int node = 0; node < spec_.nodes(); ++node) {
        for (int64_t sample = 0; sample < stride; ++sample) {
          const bool present = node < batch.real_nodes && sample < batch.samples;
          const int64_t from = sample * batch.real_nodes + node;
          const int64_t at = (slot * spec_.nodes() + node) * stride + sample;
          const auto expect = [&](const auto& ours, const auto& theirs, int absent) {
            if (theirs.empty()) return ours.empty();
            return ours[at] == (present ? theirs[from] : absent);
          };
          ASSERT_TRUE(expect(inputs, batch.inputs, 0)) << slot << node << sample;
          ASSERT_TRUE(expect(targets, batch.targets, 0)) << slot << node << sample;
          ASSERT_TRUE(expect(tokens, batch.tokens, -1)) << slot << node << sample;
          ASSERT_TRUE(expect(labels, batch.labels, -1)) << slot << node << sample;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FleetDataTest,
                         testing::Values(Kind::fixed, Kind::variable, Kind::tokens),
                         [](const auto& test) {
                           return test.param == Kind::fixed      ? "fixed"
                                  : test.param == Kind::variable ? "variable"
                                                                 : "tokens";
                         });

TEST(FleetData, RefusesTokensAndLabelsThatTheModelDoesNotHave) {
  const RunConfig config = small_token_run();
  const std::vector<RunData> good = data_of({config});
  const auto expect_refusal = [&](const std::vector<RunData>& runs, const char* problem) {
    try {
      const FleetData data(model_spec(config), stride, runs);
      FAIL() << problem;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_EQ(error.problem(), problem);
    }
  };
  std::vector<RunData> bad = good;
  bad[0].sets[0].tokens[5] = 4;
  expect_refusal(bad, "token 4 in a batch");
  bad = good;
  bad[0].sets[0].labels[5] = 7;
  expect_refusal(bad, "label 7 in a batch");
}

TEST(FleetData, TokensAndLabelsTakeTheirBytes) {
  ModelSpec spec = resolve(ModelSpec{});
  const auto bytes = [&] { return FleetData::bytes_needed(spec, 16, 1, 100); };
  const int64_t rows = 100 * spec.real_nodes + 16 * spec.nodes();
  const int64_t numbers = bytes();
  spec.vocabulary = 5;
  EXPECT_EQ(bytes(), numbers + 4 * rows);
  spec.loss = Loss::cross_entropy;
  spec.output_columns = 7;  // classes take no room: one label per node instead of one target
  EXPECT_EQ(bytes(), numbers + 4 * rows);
}

}  // namespace
}  // namespace posattn::cuda
