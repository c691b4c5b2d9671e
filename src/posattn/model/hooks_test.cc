#include "posattn/model/hooks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "posattn/base/error.h"
#include "posattn/model/blocks/reference_network.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn {
namespace {

// Every place is shown once, in order and with its shape; a hook that changes nothing leaves the
// outputs as they are.
TEST(Hooks, SeeEveryPlaceAndChangeNothing) {
  for (int trial = 0; trial < 30; ++trial) {
    RandomStream random(7, Purpose::test_data, 2, trial);
    const ModelSpec spec =
        trial % 3 == 0 ? testing::random_spec(random) : testing::random_open_spec(random);
    SCOPED_TRACE(to_json(spec));
    if (testing::has_signs(spec)) continue;
    const Parameters<float> parameters = testing::random_parameters(spec, trial);
    const int real_nodes = 1 + static_cast<int>(random.below(spec.real_nodes));
    const testing::RandomBatch data(spec, 3, real_nodes, random);
    const std::vector<ActivationPlace> places = activation_places(spec, real_nodes);
    size_t next = 0;
    const std::vector<float> found =
        run_with_hook(spec, parameters, data.batch(), [&](const ActivationView& view) {
          ASSERT_LT(next, places.size());
          EXPECT_EQ(view.name, places[next].name);
          std::vector<int64_t> shape = {3};
          shape.insert(shape.end(), places[next].shape.begin(), places[next].shape.end());
          EXPECT_EQ(view.shape, shape);
          ++next;
        });
    EXPECT_EQ(next, places.size());
    const std::vector<double> expected =
        reference_forward(spec, to_double(parameters), data.reference());
    double largest = 1;
    for (const double x : expected) largest = std::max(largest, std::abs(x));
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-4 * largest);
    }
  }
}

ModelSpec small_spec() {
  ModelSpec spec;
  spec.real_nodes = 3;
  spec.width = 4;
  spec.mlp_width = 5;
  spec.depth = 2;
  return resolve(spec);
}

// Heads are attention times values, where the strides say that they are.
TEST(Hooks, StridesReachEveryNumber) {
  const ModelSpec spec = small_spec();
  const Parameters<float> parameters = testing::random_parameters(spec, 1);
  const std::vector<float> input = {1, -2, 0.5F, 3, 1, -1};
  std::map<std::string, std::vector<float>> seen;  // by place, the last axis fastest
  run_with_hook(spec, parameters, {.inputs = input, .samples = 2, .real_nodes = 3},
                [&](const ActivationView& view) {
                  if (view.shape.size() != 4) return;
                  std::vector<float>& numbers = seen[view.name];
                  for (int64_t i = 0;
                       i < view.shape[0] * view.shape[1] * view.shape[2] * view.shape[3]; ++i) {
                    int64_t rest = i, at = 0;
                    for (int axis = 3; axis >= 0; rest /= view.shape[axis--]) {
                      at += rest % view.shape[axis] * view.strides[axis];
                    }
                    numbers.push_back(view.numbers[at]);
                  }
                });
  const int64_t nodes = 4, size = 2;
  for (int64_t matrix = 0; matrix < 2 * spec.heads; ++matrix) {
    for (int64_t i = 0; i < nodes; ++i) {
      for (int64_t c = 0; c < size; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < nodes; ++j) {
          sum += seen["layers.1.attention"][(matrix * nodes + i) * nodes + j] *
                 seen["layers.1.values"][(matrix * nodes + j) * size + c];
        }
        EXPECT_NEAR(seen["layers.1.heads"][(matrix * nodes + i) * size + c], sum, 1e-5);
      }
    }
  }
}

TEST(Hooks, WhatAHookLeavesIsWhatThePassGoesOnWith) {
  const ModelSpec spec = small_spec();
  const Parameters<float> parameters = testing::random_parameters(spec, 1);
  const std::vector<float> input = {1, -2, 0.5F}, other = {4, 4, -1};
  std::vector<float> state;
  const auto run = [&](const std::vector<float>& x, auto hook) {
    return run_with_hook(spec, parameters, {.inputs = x, .samples = 1, .real_nodes = 3}, hook);
  };
  const std::vector<float> first = run(input, [&](const ActivationView& view) {
    if (view.name == "layers.0.state") state.assign(view.numbers, view.numbers + 4 * 4);
  });
  EXPECT_NE(run(other, [](const ActivationView&) {}), first);
  EXPECT_EQ(run(other,
                [&](const ActivationView& view) {
                  if (view.name == "layers.0.state") std::ranges::copy(state, view.numbers);
                }),
            first);
}

TEST(Hooks, TooManyNumbersAreRefused) {
  const ModelSpec spec = small_spec();
  const Parameters<float> parameters = testing::random_parameters(spec, 1);
  const std::vector<float> input(int64_t{3} << 23);
  EXPECT_THROW(run_with_hook(spec, parameters,
                             {.inputs = input, .samples = int64_t{1} << 23, .real_nodes = 3},
                             [](const ActivationView&) {}),
               Error);
}

}  // namespace
}  // namespace posattn
