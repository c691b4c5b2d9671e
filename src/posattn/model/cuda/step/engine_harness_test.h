// Runs a StepEngine on batches from the host and compares it with the double reference: the same
// checks for every engine.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/kernels/cuda/stream.h"
#include "posattn/model/cuda/step/step_engine.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn::cuda::testing {

using posattn::testing::RandomBatch;

// One run's parameters and batch; a batch without samples is a slot that rests.
struct EngineSlot {
  Parameters<float> parameters;
  RandomBatch batch;
};

inline EngineSlot random_slot(const ModelSpec& spec, uint64_t seed, int64_t samples,
                              int real_nodes) {
  RandomStream random(seed, Purpose::test_data, 2, 0);
  return {posattn::testing::random_parameters(spec, seed),
          RandomBatch(spec, samples, real_nodes, random)};
}

struct EngineResult {
  double loss;
  Parameters<float> gradient;
};

// A batch in the layout of StepData, in device memory.
class DeviceBatch {
 public:
  DeviceBatch(const FleetShape& shape, const std::vector<EngineSlot>& slots) {
    const ModelSpec& spec = shape.spec;
    const int64_t nodes = spec.nodes(), stride = shape.sample_stride();
    std::vector<SlotStep> steps(shape.slots);
    std::vector<float> inputs(shape.slots * nodes * stride * spec.data_columns);
    std::vector<float> targets(shape.slots * nodes * stride * spec.output_columns);
    std::vector<uint8_t> counted(shape.slots * nodes * spec.output_columns);
    const int64_t rows = shape.slots * nodes * stride;
    std::vector<int32_t> tokens(spec.vocabulary > 0 ? rows : 0, -1);
    std::vector<int32_t> labels(spec.loss == Loss::cross_entropy ? rows : 0, -1);
    for (int slot = 0; slot < shape.slots; ++slot) {
      const RandomBatch& batch = slots[slot].batch;
      const int64_t outputs =
          batch.samples * spec.nodes_read(batch.real_nodes) * spec.output_columns;
      steps[slot] = {static_cast<int32_t>(batch.samples), batch.real_nodes,
                     outputs == 0 ? 0 : 1.0f / static_cast<float>(outputs)};
      const auto spread = [&](const auto& from, int64_t columns, auto& to) {
        if (to.empty()) return;
        for (int64_t s = 0; s < batch.samples; ++s) {
          for (int64_t i = 0; i < batch.real_nodes; ++i) {
            for (int64_t c = 0; c < columns; ++c) {
              to[((slot * nodes + i) * stride + s) * columns + c] =
                  from[(s * batch.real_nodes + i) * columns + c];
            }
          }
        }
      };
      spread(batch.inputs, spec.data_columns, inputs);
      spread(batch.targets, spec.output_columns, targets);
      spread(batch.tokens, 1, tokens);
      spread(batch.labels, 1, labels);
      // Absent nodes would count at full length: the engine must look at real_nodes as well.
      const int64_t first = spec.first_read(batch.real_nodes);
      const int64_t end = spec.read_nodes > 0   ? spec.read_nodes
                          : spec.read_nodes < 0 ? batch.real_nodes
                                                : spec.real_nodes;
      for (int64_t i = first * spec.output_columns; i < end * spec.output_columns; ++i) {
        counted[slot * nodes * spec.output_columns + i] =
            i < static_cast<int64_t>(batch.mask.size()) ? batch.mask[i] : 1;
      }
    }
    steps_ = DeviceBuffer<SlotStep>(steps);
    inputs_ = DeviceBuffer<float>(inputs);
    targets_ = DeviceBuffer<float>(targets);
    counted_ = DeviceBuffer<uint8_t>(counted);
    tokens_ = DeviceBuffer<int32_t>(tokens);
    labels_ = DeviceBuffer<int32_t>(labels);
  }
  StepData data() const {
    return {steps_.data(),   inputs_.data(), targets_.data(),
            counted_.data(), tokens_.data(), labels_.data()};
  }

 private:
  DeviceBuffer<SlotStep> steps_;
  DeviceBuffer<float> inputs_, targets_;
  DeviceBuffer<uint8_t> counted_;
  DeviceBuffer<int32_t> tokens_, labels_;
};

// One step of every slot. Gradients and losses hold NaN before, so that what is not overwritten
// shows, and what rests is still NaN. `slots` has shape.slots elements.
inline std::vector<EngineResult> run_engine(StepEngine& engine, const FleetShape& shape,
                                            const std::vector<EngineSlot>& slots) {
  const auto layout = std::make_shared<const ParameterLayout>(shape.spec);
  const int64_t size = layout->buffer_size();
  std::vector<float> parameters(shape.slots * size);
  for (int slot = 0; slot < shape.slots; ++slot) {
    const auto values = slots[slot].parameters.values();
    std::copy(values.begin(), values.end(), parameters.begin() + slot * size);
  }
  const DeviceBatch batch(shape, slots);
  const DeviceBuffer<float> device_parameters(parameters);
  DeviceBuffer<float> gradients(
      std::vector<float>(parameters.size(), std::numeric_limits<float>::quiet_NaN()));
  DeviceBuffer<double> losses(
      std::vector<double>(shape.slots, std::numeric_limits<double>::quiet_NaN()));

  const Stream stream(Stream::independent);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  StepGraph graph(
      [&](cudaStream_t on) {
        engine.enqueue(batch.data(), device_parameters.data(), gradients.data(), losses.data(), on);
      },
      stream.get());
  graph.launch(stream.get());
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");

  const std::vector<float> gradient = gradients.download();
  const std::vector<double> loss = losses.download();
  std::vector<EngineResult> results;
  for (int slot = 0; slot < shape.slots; ++slot) {
    results.push_back({loss[slot], Parameters<float>(layout)});
    std::copy_n(gradient.begin() + slot * size, size, results[slot].gradient.values().begin());
  }
  return results;
}

// Loss and the gradient of every trained tensor, by relative norm: the difference of a tensor may
// be `tolerance` of its norm plus a hundredth of the whole gradient's (some gradients are zero but
// for rounding).
inline void expect_matches_reference(const ModelSpec& spec, const EngineSlot& slot,
                                     const EngineResult& result, double tolerance) {
  if (slot.batch.samples == 0) {
    EXPECT_TRUE(std::isnan(result.loss));
    for (const float g : result.gradient.values()) EXPECT_TRUE(std::isnan(g));
    return;
  }
  Parameters<double> expected(spec);
  const double loss = reference_gradient(spec, to_double(slot.parameters), slot.batch.reference(),
                                         slot.batch.mask, expected);
  EXPECT_LE(std::abs(result.loss - loss), tolerance * (loss + 1e-6));
  double whole = 0;
  for (const double g : expected.values()) whole += g * g;
  for (const TensorInfo& tensor : expected.layout().tensors()) {
    if (!tensor.trained) continue;
    const auto ours = result.gradient.slice(tensor);
    const auto theirs = expected.slice(tensor);
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < tensor.size; ++i) {
      difference += (ours[i] - theirs[i]) * (ours[i] - theirs[i]);
      norm += theirs[i] * theirs[i];
    }
    // The comparison is written so that a NaN fails.
    EXPECT_TRUE(std::sqrt(difference) <= tolerance * (std::sqrt(norm) + 0.01 * std::sqrt(whole)))
        << tensor.name << ": difference " << std::sqrt(difference) << ", norm " << std::sqrt(norm)
        << ", whole gradient " << std::sqrt(whole);
  }
}

// Both have the same bits; padding and untrained tensors are left out.
inline void expect_same_bits(const EngineResult& one, const EngineResult& other) {
  EXPECT_EQ(std::memcmp(&one.loss, &other.loss, sizeof(double)), 0);
  for (const TensorInfo& tensor : one.gradient.layout().tensors()) {
    if (!tensor.trained) continue;
    EXPECT_EQ(std::memcmp(one.gradient.slice(tensor).data(), other.gradient.slice(tensor).data(),
                          tensor.size * sizeof(float)),
              0)
        << tensor.name;
  }
}

// Every slot of a fleet against the reference; a second step on the same engine, and each slot
// alone in a fleet of one, must give the same bits. make_engine(shape) makes the engine.
template <class MakeEngine>
void check_engine(const FleetShape& shape, const std::vector<EngineSlot>& slots, double tolerance,
                  MakeEngine make_engine) {
  const auto engine = make_engine(shape);
  const std::vector<EngineResult> results = run_engine(*engine, shape, slots);
  const std::vector<EngineResult> again = run_engine(*engine, shape, slots);
  for (int slot = 0; slot < shape.slots; ++slot) {
    SCOPED_TRACE(::testing::Message() << "slot " << slot << ", " << engine->name());
    expect_matches_reference(shape.spec, slots[slot], results[slot], tolerance);
    expect_same_bits(results[slot], again[slot]);
    if (shape.slots == 1 || slots[slot].batch.samples == 0) continue;
    FleetShape alone = shape;
    alone.slots = 1;
    const auto small = make_engine(alone);
    expect_same_bits(results[slot], run_engine(*small, alone, {slots[slot]})[0]);
  }
}

}  // namespace posattn::cuda::testing
