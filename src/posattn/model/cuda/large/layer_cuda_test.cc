#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/large/layer.h"
#include "posattn/model/cuda/large/layer_reference_test.h"

namespace posattn::cuda::large {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> normals(RandomStream& random, int64_t count, double scale) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(scale * random.normal());
  return values;
}

// Memory of absent samples, and places between the weights, hold NaN: nobody may read them.
Slot random_slot(const Case& c, int seed, const SlotStep& step) {
  RandomStream random(seed, Purpose::initial_values, 0, 0);
  const Places places(c);
  Slot slot;
  slot.step = step;
  const int64_t sample_rows = int64_t{c.samples} * c.nodes;
  slot.inputs = normals(random, sample_rows, 1);
  slot.positions = normals(random, c.nodes * (c.columns - 1), 1);
  slot.rows = normals(random, sample_rows * c.columns, 1);
  for (float& value : slot.rows) value = std::fmax(value, 0.0F);
  slot.errors = normals(random, sample_rows * c.hidden, 1);
  for (int64_t row = 0; row < sample_rows; ++row) {
    const int sample = static_cast<int>(row / c.nodes), node = static_cast<int>(row % c.nodes);
    for (int k = 0; k < c.hidden; ++k) {
      float& error = slot.errors[row * c.hidden + k];
      if (sample >= step.samples) {
        error = nan;
      } else if (!is_heard(c, step, node)) {
        error = 0;
      }
    }
    if (sample < step.samples) continue;
    slot.inputs[node * c.samples + sample] = nan;
    for (int k = 0; k < c.columns; ++k) slot.rows[row * c.columns + k] = nan;
  }
  slot.folded.assign(places.size, nan);
  const auto place = [&](int at, int count, double scale) {
    const std::vector<float> values = normals(random, count, scale);
    std::copy(values.begin(), values.end(), slot.folded.begin() + at);
  };
  place(places.maps, places.maps_size, 1 / std::sqrt(c.columns));
  place(places.constant, c.hidden, 1);
  place(places.scores, places.scores_size, 0.5 / c.columns);
  place(places.score_bias, places.bias_size, 0.5 / std::sqrt(c.columns));
  place(places.attention, places.attention_size, 1 / std::sqrt(c.nodes));
  for (int at = 0; at < places.attention_size; ++at) {
    if (!is_heard(c, step, at % c.nodes)) slot.folded[places.attention + at] = 0;
  }
  return slot;
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::vector<float> part(const std::vector<float>& all, size_t index, size_t parts) {
  const size_t size = all.size() / parts;
  return {all.begin() + static_cast<int64_t>(index * size),
          all.begin() + static_cast<int64_t>((index + 1) * size)};
}

// Runs the kernels forward and backward; the errors of the layer before come where its rows were.
void run(const Case& c, std::vector<Slot>& slots, Precision precision) {
  const Places places(c);
  std::vector<float> inputs, positions, rows, folded, errors;
  std::vector<SlotStep> steps;
  for (const Slot& slot : slots) {
    append(inputs, slot.inputs);
    if (c.positions_per_slot || positions.empty()) append(positions, slot.positions);
    append(rows, slot.rows);
    append(folded, slot.folded);
    append(errors, slot.errors);
    steps.push_back(slot.step);
  }
  const DeviceBuffer<float> device_inputs(inputs), device_positions(positions);
  const DeviceBuffer<float> device_folded(folded), device_errors(errors);
  const DeviceBuffer<SlotStep> device_steps(steps);
  DeviceBuffer<float> device_rows(rows);
  const auto count = static_cast<int64_t>(slots.size());
  DeviceBuffer<float> output(std::vector<float>(errors.size(), nan));
  DeviceBuffer<float> kept(
      std::vector<float>(c.from_data ? count * c.samples * c.heads * c.nodes * c.nodes : 0, nan));

  Layer layer;
  layer.steps = device_steps.data();
  layer.slots = static_cast<int>(count);
  layer.samples = c.samples;
  layer.nodes = c.nodes;
  layer.real_nodes = c.real_nodes;
  layer.heads = c.heads;
  layer.columns = c.columns;
  layer.hidden = c.hidden;
  layer.from_data = c.from_data;
  if (c.first_layer) {
    layer.inputs = device_inputs.data();
    layer.positions = c.columns > 1 ? device_positions.data() : nullptr;
    layer.positions_slot = c.positions_per_slot ? c.nodes * (c.columns - 1) : 0;
  } else {
    layer.rows = device_rows.data();
    layer.previous_errors = device_rows.data();
  }
  layer.folded = device_folded.data();
  layer.folded_size = places.size;
  layer.maps = places.maps;
  layer.constant = places.constant;
  layer.scores = places.scores;
  layer.score_bias = places.score_bias;
  layer.attention = places.attention;
  layer.kept_attention = kept.data();
  layer.output = output.data();
  layer.errors = device_errors.data();
  DeviceBuffer<float> partials(std::vector<float>(count * groups(layer) * places.size, nan));
  layer.partials = partials.data();
  enqueue_forward(layer, precision, nullptr);
  enqueue_backward(layer, precision, nullptr);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");

  const std::vector<float> outputs = output.download(), previous = device_rows.download();
  const std::vector<float> all = partials.download();
  for (size_t i = 0; i < slots.size(); ++i) {
    Slot& slot = slots[i];
    slot.output = part(outputs, i, slots.size());
    slot.previous_errors = part(previous, i, slots.size());
    slot.partials = part(all, i, slots.size());
    slot.gradients.assign(places.size, 0);
    for (size_t at = 0; at < slot.partials.size(); ++at) {
      slot.gradients[at % places.size] += slot.partials[at];
    }
  }
}

// |got - wanted| / |wanted| over `count` numbers from `at` on.
void expect_near(const std::vector<float>& got, const std::vector<double>& wanted, int64_t at,
                 int64_t count, double tolerance, const char* what) {
  double difference = 0, norm = 0;
  for (int64_t i = at; i < at + count; ++i) {
    difference += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(norm)) << what << " of norm " << norm;
}

double tolerance(Precision precision) { return precision == Precision::fp32 ? 1e-5 : 1e-2; }

void expect_untouched(const std::vector<float>& values, int64_t from) {
  for (size_t i = from; i < values.size(); ++i) ASSERT_TRUE(std::isnan(values[i])) << i;
}

void expect_right(const Case& c, const Slot& slot, Precision precision) {
  const Places places(c);
  const int64_t rows = int64_t{slot.step.samples} * c.nodes;
  expect_untouched(slot.output, rows * c.hidden);
  if (!c.first_layer) expect_untouched(slot.previous_errors, rows * c.columns);
  if (slot.step.samples == 0) {
    expect_untouched(slot.partials, 0);
    return;
  }
  const Reference wanted(c, slot);
  const double most = tolerance(precision);
  expect_near(slot.output, wanted.output, 0, rows * c.hidden, most, "output");
  if (!c.first_layer) {
    expect_near(slot.previous_errors, wanted.previous_errors, 0, rows * c.columns, most,
                "previous errors");
  }
  const auto gradient = [&](int at, int count, const char* what) {
    expect_near(slot.gradients, wanted.gradients, at, count, most, what);
  };
  gradient(places.maps, places.maps_size, "maps");
  gradient(places.constant, c.hidden, "constant");
  gradient(places.scores, places.scores_size, "scores");
  gradient(places.score_bias, places.bias_size, "score bias");
  gradient(places.attention, places.attention_size, "attention");
}

std::vector<Slot> random_slots(const Case& c) {
  std::vector<Slot> slots;
  for (const SlotStep& step : c.steps) {
    slots.push_back(random_slot(c, static_cast<int>(slots.size()) + 1, step));
    if (!c.positions_per_slot) slots.back().positions = slots.front().positions;
  }
  return slots;
}

void check_layer(const Case& c, Precision precision) {
  SCOPED_TRACE("nodes " + std::to_string(c.nodes) + ", heads " + std::to_string(c.heads) +
               ", columns " + std::to_string(c.columns) + ", hidden " + std::to_string(c.hidden) +
               (c.from_data ? ", from data" : ", from positions") +
               (c.first_layer ? ", first" : ""));
  ASSERT_TRUE(supports(c.nodes, c.heads, c.columns, c.hidden));
  std::vector<Slot> slots = random_slots(c);
  // The reference reads the rows, which the errors replace on the device only.
  run(c, slots, precision);
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    SCOPED_TRACE("slot " + std::to_string(slot));
    expect_right(c, slots[slot], precision);
  }
}

class LargeLayer : public ::testing::TestWithParam<Precision> {};

TEST_P(LargeLayer, UsualSizes) {
  for (const bool from_data : {false, true}) {
    for (const int nodes : {17, 33, 65}) {
      check_layer({nodes, nodes - 1, 2, 64, 64, from_data, false, 3, {{3, nodes - 1, 0}}},
                  GetParam());
    }
  }
}

TEST_P(LargeLayer, FirstLayer) {
  for (const bool from_data : {false, true}) {
    check_layer({65, 64, 2, 66, 64, from_data, true, 2, {{2, 64, 0}, {1, 64, 0}}, from_data},
                GetParam());
    check_layer({17, 16, 1, 18, 64, from_data, true, 5, {{5, 16, 0}, {5, 9, 0}}, !from_data},
                GetParam());
    check_layer({9, 9, 2, 1, 16, from_data, true, 10, {{10, 9, 0}}}, GetParam());
  }
}

TEST_P(LargeLayer, Wide) {
  check_layer({33, 32, 2, 128, 128, false, false, 3, {{3, 32, 0}}}, GetParam());
  check_layer({20, 20, 1, 128, 128, true, false, 4, {{4, 20, 0}}}, GetParam());
  check_layer({65, 64, 4, 136, 100, true, true, 1, {{1, 64, 0}}}, GetParam());
  check_layer({65, 64, 4, 136, 128, false, true, 1, {{1, 60, 0}}}, GetParam());
}

// Widths that fill no fragment, of a layer before that is as wide.
TEST_P(LargeLayer, AnySizes) {
  RandomStream random(7, Purpose::initial_values, 0, 0);
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random.below(high - low + 1));
  };
  for (int round = 0; round < 16; ++round) {
    const int nodes = between(2, round % 4 == 0 ? 65 : 20), real_nodes = nodes - between(0, 1);
    const int hidden = between(1, round % 4 == 1 ? 128 : 40), samples = between(1, 12);
    const bool first = between(0, 2) == 0;
    check_layer({nodes,
                 real_nodes,
                 between(1, 4),
                 first ? between(1, 80) : hidden,
                 hidden,
                 round % 2 == 0,
                 first,
                 samples,
                 {{between(1, samples), between(1, real_nodes), 0}}},
                GetParam());
  }
}

// Slots that fill their groups, end within one, have absent nodes, or rest.
TEST_P(LargeLayer, GroupsAndRest) {
  for (const bool from_data : {false, true}) {
    const Case c = {
        41, 40, 2, 12, 12, from_data, false, 20, {{20, 40, 0}, {0, 40, 0}, {3, 31, 0}, {9, 40, 0}}};
    check_layer(c, GetParam());
  }
}

TEST_P(LargeLayer, SameBitsInAnyFleet) {
  for (const bool from_data : {false, true}) {
    Case c = {10, 9, 2, 24, 24, from_data, false, 70, {{70, 9, 0}, {66, 5, 0}, {0, 9, 0}}};
    std::vector<Slot> fleet = random_slots(c);
    std::vector<Slot> alone = {fleet[1]};
    run(c, fleet, GetParam());
    run(c, alone, GetParam());
    const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
      ASSERT_EQ(x.size(), y.size());
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_EQ(std::bit_cast<uint32_t>(x[i]), std::bit_cast<uint32_t>(y[i])) << i;
      }
    };
    same(fleet[1].output, alone[0].output);
    same(fleet[1].previous_errors, alone[0].previous_errors);
    same(fleet[1].partials, alone[0].partials);
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, LargeLayer,
                         ::testing::Values(Precision::fp32, Precision::tf32), [](const auto& test) {
                           return test.param == Precision::fp32 ? "fp32" : "tf32";
                         });

TEST(LargeLayerSupports, Bounds) {
  EXPECT_TRUE(supports(65, 4, 136, 128));
  EXPECT_FALSE(supports(66, 4, 136, 128));
  EXPECT_FALSE(supports(65, 5, 136, 128));
  EXPECT_FALSE(supports(65, 4, 137, 128));
  EXPECT_FALSE(supports(65, 4, 136, 129));
}

}  // namespace
}  // namespace posattn::cuda::large
