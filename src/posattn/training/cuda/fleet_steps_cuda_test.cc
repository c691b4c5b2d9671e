#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/training/cuda/fleet_steps.h"
#include "posattn/training/optimiser.h"
#include "posattn/training/run.h"
#include "posattn/training/small_run_test.h"

namespace posattn::cuda {
namespace {

// Two slots of a tiny model with a fixed random encoding, so that one tensor is not trained.
class FleetStepsTest : public testing::Test {
 protected:
  FleetStepsTest() {
    arrays_.slots = 2;
    arrays_.parameters = size_;
    arrays_.plans = plans_.data();
    arrays_.cursors = cursors_.data();
    arrays_.current = current_.data();
    arrays_.steps = steps_.data();
    arrays_.losses = losses_.data();
    arrays_.squares = squares_.data();
    arrays_.trained = trained_.data();
    arrays_.gradients = gradients_.data();
    arrays_.state = state_.data();
    arrays_.backup = backup_.data();
  }
  static RunConfig config() {
    RunConfig config = small_run();
    config.encoding = Encoding::random;
    return config;
  }
  std::vector<uint8_t> mask() const {
    std::vector<uint8_t> trained(size_);
    for (const TensorInfo& tensor : layout_->tensors()) {
      for (int64_t i = 0; i < tensor.size; ++i) trained[tensor.offset + i] = tensor.trained;
    }
    return trained;
  }
  // Both slots at the same made-up state, which is returned.
  RunState fill() {
    RunState state = initial_state(config());
    for (std::size_t i = 0; i < state.parameters.values().size(); ++i) {
      state.optimiser.first_moment.values()[i] = 0.01f * static_cast<float>(i % 7);
      state.optimiser.second_moment.values()[i] = 0.001f * static_cast<float>(i % 5);
    }
    for (int slot = 0; slot < 2; ++slot) {
      state_.upload(state.parameters.values().data(), size_, slot * size_);
      state_.upload(state.optimiser.first_moment.values().data(), size_, (2 + slot) * size_);
      state_.upload(state.optimiser.second_moment.values().data(), size_, (4 + slot) * size_);
    }
    return state;
  }
  Parameters<float> gradient() {
    Parameters<float> values(layout_);
    for (const TensorInfo& tensor : layout_->tensors()) {
      for (int64_t i = 0; i < tensor.size; ++i) {
        values.slice(tensor)[i] = 0.1f * static_cast<float>(i % 11) - 0.4f;
      }
    }
    gradients_.upload(values.values().data(), size_, 0);
    gradients_.upload(values.values().data(), size_, size_);
    return values;
  }
  std::vector<float> part(const DeviceBuffer<float>& from, int which, int slot) const {
    std::vector<float> values(size_);
    from.download(values.data(), size_, (2 * which + slot) * size_);
    return values;
  }

  std::shared_ptr<const ParameterLayout> layout_ =
      std::make_shared<const ParameterLayout>(model_spec(config()));
  int64_t size_ = layout_->buffer_size();
  DeviceBuffer<StepPlan> plans_{4};
  DeviceBuffer<SlotCursor> cursors_{2};
  DeviceBuffer<StepPlan> current_{2};
  DeviceBuffer<SlotStep> steps_{2};
  DeviceBuffer<double> losses_{2};
  DeviceBuffer<double> squares_{4 * norm_parts};
  DeviceBuffer<uint8_t> trained_{mask()};
  DeviceBuffer<float> gradients_{2 * size_}, state_{6 * size_}, backup_{6 * size_};
  FleetArrays arrays_;
};

TEST_F(FleetStepsTest, AdamIsTheOptimisersAndRestingSlotsStay) {
  struct Clip {
    double absolute, relative;
  };
  for (const auto [clip, relative] : {Clip{0, 0}, Clip{0.5, 0}, Clip{1e6, 0}, Clip{0, 0.05}}) {
    RunState expected = fill();
    const RunState before = expected;
    Parameters<float> g = gradient();
    OptimiserOptions options;
    options.weight_decay = 0.01;
    options.kind = clip == 0 ? OptimiserKind::adam : OptimiserKind::adamw;
    if (relative > 0) options.epsilon = 0;
    const bool clips = clip > 0 || relative > 0;
    StepPlan plan;
    plan.step.samples = 5;
    plan.clip = static_cast<float>(clip);
    plan.clip_relative = relative_clip(options, relative, 4);
    plan.adam = adam_numbers<float>(options, 0.01, 4);
    current_.upload(&plan, 1, 1);
    const SlotStep resting, stepping{5, 3, 1};
    steps_.upload(&resting, 1, 0);
    steps_.upload(&stepping, 1, 1);
    if (clips) sum_gradient_squares(arrays_, nullptr);
    update_weights(arrays_, clips, nullptr);
    expected.optimiser.step = 3;
    if (clip > 0) clip_gradient(clip, g);
    if (relative > 0) {
      const double limit = relative_limit(options, relative, expected.optimiser);
      EXPECT_LT(limit, clip_gradient(limit, g, 0));
    }
    optimiser_step(options, 0.01, g, expected.optimiser, expected.parameters);
    const std::vector<float> weights = part(state_, 0, 1), second = part(state_, 2, 1);
    const std::vector<uint8_t> trained = mask();
    const auto start = before.parameters.values();
    for (int64_t i = 0; i < size_; ++i) {
      const float weight = expected.parameters.values()[i];
      ASSERT_NEAR(weights[i], weight, 2e-6 * (1 + std::abs(weight))) << i;
      ASSERT_NEAR(second[i], expected.optimiser.second_moment.values()[i], 1e-7) << i;
      ASSERT_TRUE(trained[i] != 0 || weights[i] == start[i]) << i;
    }
    EXPECT_EQ(part(state_, 0, 0), std::vector<float>(start.begin(), start.end()));
  }
}

TEST_F(FleetStepsTest, StepsFollowThePlanAndABadLossEndsThem) {
  std::vector<StepPlan> plans(4);
  for (int i = 0; i < 4; ++i) plans[i].step.samples = 10 + i;
  plans_.upload(plans.data(), 4);
  SlotCursor cursors[2];
  cursors[0].steps = cursors[1].steps = 2;
  cursors[1].plan = 2;
  cursors_.upload(cursors, 2);
  const auto expect_samples = [&](int first, int second) {
    EXPECT_EQ(steps_.download()[0].samples, first);
    EXPECT_EQ(steps_.download()[1].samples, second);
  };
  begin_step(arrays_, nullptr);
  expect_samples(10, 12);
  const double losses[2] = {0.5, std::nan("")};
  losses_.upload(losses, 2);
  begin_step(arrays_, nullptr);
  expect_samples(11, 0);
  begin_step(arrays_, nullptr);  // the first slot's epoch is over
  expect_samples(0, 0);
  const SlotCursor first = cursors_.download()[0], second = cursors_.download()[1];
  EXPECT_EQ(first.summed_loss, 1.0);
  EXPECT_EQ(first.bad_position, 0);
  EXPECT_EQ(second.bad_position, 1);
  EXPECT_TRUE(std::isnan(second.bad_loss));
  EXPECT_EQ(second.summed_loss, 0);
}

TEST_F(FleetStepsTest, AnEpochsEndFindsWhatIsNotFiniteAndItsBeginKeepsTheState) {
  fill();
  const float infinite = std::numeric_limits<float>::infinity();
  state_.upload(&infinite, 1, size_ - 1);      // the last weight of slot 0
  state_.upload(&infinite, 1, 5 * size_ + 3);  // a second moment of slot 1
  const DeviceBuffer<int32_t> both(std::vector<int32_t>{0, 1});
  end_epoch(arrays_, both.data(), 2, nullptr);
  SlotCursor cursors[2];
  cursors_.download(cursors, 2);
  EXPECT_EQ(cursors[0].bad_weights, 1);
  EXPECT_EQ(cursors[0].bad_squares, 0);
  EXPECT_EQ(cursors[1].bad_weights, 0);
  EXPECT_EQ(cursors[1].bad_squares, 1);
  cursors[1].steps = 3;
  cursors_.upload(cursors, 2);
  const DeviceBuffer<EpochBegin> begin(std::vector<EpochBegin>{{1, 0}});
  begin_epoch(arrays_, begin.data(), 1, nullptr);
  for (int which = 0; which < 3; ++which) {
    EXPECT_EQ(part(backup_, which, 1), part(state_, which, 1));
    EXPECT_EQ(part(backup_, which, 0), std::vector<float>(size_));
  }
  EXPECT_EQ(cursors_.download()[1].bad_squares, 0);
  EXPECT_EQ(cursors_.download()[1].steps, 3);
  const DeviceBuffer<EpochBegin> rest(std::vector<EpochBegin>{{1, 1}});
  begin_epoch(arrays_, rest.data(), 1, nullptr);
  EXPECT_EQ(cursors_.download()[1].position, 3);
}

}  // namespace
}  // namespace posattn::cuda
