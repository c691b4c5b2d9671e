// Labels of the states between layers: ModelSpec::hint_columns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/model/blocks/block_network.h"
#include "posattn/model/network_engine.h"
#include "posattn/model/spec/random_spec_test.h"
#include "posattn/model/spec/scale_wrap.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

using testing::random_open_spec;
using testing::random_parameters;
using testing::RandomBatch;

// A random spec with one to three labels after each layer, and a batch with labels.
struct HintCase {
  explicit HintCase(uint32_t trial) {
    RandomStream random(31, Purpose::test_data, 0, trial);
    do {
      spec = random_open_spec(random);
    } while (spec.loops != "1" || testing::is_drawn(spec) || testing::has_signs(spec));
    for (int layer = 0; layer < spec.depth; ++layer) {
      spec.hint_columns.push_back(1 + static_cast<int>(random.below(3)));
    }
    data.emplace(spec, 3, 1 + static_cast<int>(random.below(spec.real_nodes)), random);
    labels.resize(data->samples * data->real_nodes *
                  std::accumulate(spec.hint_columns.begin(), spec.hint_columns.end(), 0));
    for (float& label : labels) label = random.uniform(-2, 2);
    labels64.assign(labels.begin(), labels.end());
  }
  ReferenceBatch reference(double weight) const {
    ReferenceBatch batch = data->reference();
    batch.hints = labels64;
    batch.hint_weight = weight;
    return batch;
  }
  Batch batch(double weight) const {
    Batch batch = data->batch();
    batch.hints = labels;
    batch.hint_weight = weight;
    return batch;
  }

  ModelSpec spec;
  std::optional<RandomBatch> data;
  std::vector<float> labels;
  std::vector<double> labels64;
};

// The mean squared error of the maps' readings, from the states that a hook sees.
double hint_loss(const HintCase& c, const Parameters<double>& parameters) {
  const ReferenceBatch batch = c.reference(1);
  const ScaledBatch<double> scaled(c.spec, batch);
  BlockNetwork<double> network(c.spec);
  network.prepare(parameters, batch.real_nodes);
  double sum = 0;
  int64_t sample = 0;
  auto label = c.labels64.begin();
  const BlockHook<double> read = [&](Activated what, int layer, int, std::span<double> x) {
    if (what != Activated::state) return;
    const int d = c.spec.width, columns = c.spec.hint_columns[layer];
    const auto weight = parameters[names::weight(names::hint(layer))];
    const auto bias = parameters[names::bias(names::hint(layer))];
    for (int row = 0; row < batch.real_nodes * columns; ++row) {
      const int node = row / columns, column = row % columns;
      double y = bias[column];
      for (int i = 0; i < d; ++i) y += weight[column * d + i] * x[node * d + i];
      const double error = scaled.batch().unit(sample) * y - *label++;
      sum += error * error;
    }
  };
  BlockTape<double> tape;
  tape.scratch.hook = &read;
  for (; sample < batch.samples; ++sample) network.forward(scaled.batch(), sample, 1, tape);
  return sum / static_cast<double>(c.labels64.size());
}

// With H that loss: the maps follow dH, all else d(task's loss) + weight dH.
TEST(Hints, GradientIsThatOfBothLosses) {
  for (uint32_t trial = 0; trial < 12; ++trial) {
    const HintCase c(trial);
    SCOPED_TRACE(to_json(c.spec));
    Parameters<double> parameters = to_double(random_parameters(c.spec, trial));
    Parameters<double> gradient(parameters.shared_layout()), unused(parameters.shared_layout());
    constexpr double weight = 0.7;
    const auto loss = [&](Parameters<double>& into) {
      return reference_gradient(c.spec, parameters, c.reference(weight), c.data->mask, into);
    };
    loss(gradient);
    RandomStream random(32, Purpose::test_data, 0, trial);
    for (const TensorInfo& t : parameters.layout().tensors()) {
      if (!t.trained) continue;
      const int64_t i = t.offset + random.below(static_cast<uint32_t>(t.size));
      const double saved = parameters.values()[i];
      double best = 1e30;  // a ReLU's corner hardly lies within both steps
      for (const double h : {1e-5, 1e-7}) {
        double sides[2];
        for (int side = 0; side < 2; ++side) {
          parameters.values()[i] = saved + (side ? h : -h);
          sides[side] = (t.of_training ? 1 : weight) * hint_loss(c, parameters) + loss(unused);
        }
        parameters.values()[i] = saved;
        best = std::min(best, std::abs((sides[1] - sides[0]) / (2 * h) - gradient.values()[i]));
      }
      EXPECT_LT(best, 1e-6 * (1 + std::abs(gradient.values()[i]))) << t.name;
    }
  }
}

TEST(Hints, FloatAgreesWithTheReferenceForAnyThreads) {
  for (uint32_t trial = 100; trial < 130; ++trial) {
    const HintCase c(trial);
    SCOPED_TRACE(to_json(c.spec));
    const Parameters<float> parameters = random_parameters(c.spec, trial);
    Parameters<float> one(parameters.shared_layout()), three(parameters.shared_layout());
    Parameters<double> exact(parameters.shared_layout());
    reference_gradient(c.spec, to_double(parameters), c.reference(3), c.data->mask, exact);
    Network(c.spec, {.threads = 1}).gradient(parameters, c.batch(3), c.data->mask, one);
    Network(c.spec, {.threads = 3}).gradient(parameters, c.batch(3), c.data->mask, three);
    EXPECT_TRUE(std::ranges::equal(one.values(), three.values()));
    const double scale = std::abs(*std::ranges::max_element(
        exact.values(), {}, [](double value) { return std::abs(value); }));
    for (size_t i = 0; i < exact.values().size(); ++i) {
      ASSERT_NEAR(one.values()[i], exact.values()[i], 1e-4 * scale) << i;
    }
  }
}

TEST(Hints, OfWeightZeroLeaveTheModelAlone) {
  for (uint32_t trial = 200; trial < 220; ++trial) {
    const HintCase c(trial);
    ModelSpec plain = c.spec;
    plain.hint_columns.clear();
    const Parameters<float> parameters = random_parameters(c.spec, trial);
    Parameters<float> weights(plain);  // those of the model come first
    std::copy_n(parameters.values().begin(), weights.values().size(), weights.values().begin());
    Parameters<float> with(parameters.shared_layout()), without(weights.shared_layout());
    Network network(c.spec);
    const double loss = network.gradient(parameters, c.batch(0), c.data->mask, with);
    const auto engine = engine::make_block_executor(plain, {});
    const Batch batch = c.data->batch();
    const ScaledBatch<float> scaled(plain, batch);
    EXPECT_EQ(engine->gradient(weights, scaled.batch(), c.data->mask, without), loss);
    EXPECT_TRUE(std::ranges::equal(with.values().first(without.values().size()), without.values()));
    EXPECT_TRUE(std::ranges::any_of(with["hints.0.weight"], [](float g) { return g != 0; }));
  }
}

TEST(Hints, NeedLabelsAndLayersOfTheirOwn) {
  HintCase c(0);
  Parameters<float> gradient(c.spec);
  EXPECT_THROW(Network(c.spec).gradient(Parameters<float>(c.spec), c.data->batch(), {}, gradient),
               Error);
  c.spec.loops = "2";
  EXPECT_THROW(resolve(c.spec), Error);
  c.spec.loops = "1";
  c.spec.hint_columns.push_back(1);
  EXPECT_THROW(resolve(c.spec), Error);
}

}  // namespace
}  // namespace posattn
