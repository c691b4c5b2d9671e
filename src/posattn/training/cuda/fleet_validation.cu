#include <algorithm>

#include "posattn/training/cuda/fleet_validation.h"
#include "posattn/training/run.h"

namespace posattn::cuda {
namespace {

std::vector<RunData> validation_sets(const std::vector<DeviceRun>& runs, int threads) {
  std::vector<RunData> data;
  for (const DeviceRun& run : runs) {
    const RunConfig& config = run.config;
    data.push_back({config.data_seed_used(), validation_data(config, threads),
                    loss_mask(task_of(config), static_cast<int>(config.length))});
  }
  return data;
}

// The steps in which a run's samples are taken. Their losses add up to the mean over all samples.
std::vector<StepPlan> plans_of(const ModelSpec& spec, const std::vector<SetPlace>& sets,
                               int64_t batch) {
  int64_t all = 0;
  for (const SetPlace& set : sets) all += set.samples;
  std::vector<StepPlan> plans;
  for (const SetPlace& set : sets) {
    for (int64_t begin = 0; begin < set.samples; begin += batch) {
      StepPlan plan;
      plan.step.samples = static_cast<int32_t>(std::min(batch, set.samples - begin));
      plan.step.real_nodes = set.real_nodes;
      plan.step.loss_scale = static_cast<float>(
          1 / (static_cast<double>(all) * spec.nodes_read(set.real_nodes) * spec.output_columns));
      plan.order = set.order + begin;
      plan.rows = set.rows;
      plans.push_back(plan);
    }
  }
  return plans;
}

// Sets of different lengths each end with a step that is not full.
int64_t most_steps(const RunConfig& config, int64_t batch) {
  const int64_t sets = config.variable_length ? config.length : 1;
  return config.validation_samples / batch + sets;
}

int64_t most_steps(const std::vector<DeviceRun>& runs, int64_t batch) {
  int64_t most = 0;
  for (const DeviceRun& run : runs) most = std::max(most, most_steps(run.config, batch));
  return most;
}

}  // namespace

FleetValidation::FleetValidation(const FleetShape& shape, const std::vector<DeviceRun>& runs,
                                 StepEngine& engine, const float* parameters, float* gradients,
                                 int threads, cudaStream_t stream)
    : slots_(shape.slots),
      steps_(most_steps(runs, shape.batch)),
      data_(shape.spec, shape.sample_stride(), validation_sets(runs, threads)),
      losses_(steps_ * slots_),
      host_losses_(steps_ * slots_) {
  std::vector<StepPlan> plans(steps_ * slots_);
  std::vector<SlotStep> slot_steps(steps_ * slots_);
  for (int slot = 0; slot < slots_; ++slot) {
    int64_t at = slot;
    for (const StepPlan& plan : plans_of(shape.spec, data_.sets(slot), shape.batch)) {
      plans[at] = plan;
      slot_steps[at] = plan.step;
      at += slots_;
    }
  }
  plans_ = DeviceBuffer<StepPlan>(plans);
  slot_steps_ = DeviceBuffer<SlotStep>(slot_steps);
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // memory is filled by another stream
  const auto enqueue_steps = [&](cudaStream_t on) {
    for (int64_t at = 0; at < steps_ * slots_; at += slots_) {
      data_.gather(plans_.data() + at, on);
      StepData data;
      data.slots = slot_steps_.data() + at;
      data.inputs = data_.inputs();
      data.targets = data_.targets();
      data.counted = data_.counted();
      data.tokens = data_.tokens();
      data.labels = data_.labels();
      engine.enqueue(data, parameters, gradients, losses_.data() + at, on);
    }
  };
  graph_.emplace(enqueue_steps, stream);
}

int64_t FleetValidation::bytes_needed(const FleetShape& shape,
                                      const std::vector<RunConfig>& configs) {
  int64_t samples = 0, steps = 0;
  for (const RunConfig& config : configs) {
    samples += config.validation_samples;
    steps = std::max(steps, most_steps(config, shape.batch));
  }
  return FleetData::bytes_needed(shape.spec, shape.sample_stride(), shape.slots, samples) +
         steps * shape.slots * int64_t{sizeof(StepPlan) + sizeof(SlotStep) + sizeof(double)};
}

void FleetValidation::enqueue(cudaStream_t stream) {
  graph_->launch(stream);
  check(cudaMemcpyAsync(host_losses_.data(), losses_.data(), losses_.size() * sizeof(double),
                        cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
}

double FleetValidation::loss(int slot) const {
  double sum = 0;
  for (int64_t at = slot; at < steps_ * slots_; at += slots_) sum += host_losses_[at];
  return sum;
}

}  // namespace posattn::cuda
