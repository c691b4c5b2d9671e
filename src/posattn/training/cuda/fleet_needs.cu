#include "posattn/model/device_network.h"
#include "posattn/training/cuda/fleet_data.h"
#include "posattn/training/cuda/fleet_slot.h"
#include "posattn/training/cuda/fleet_validation.h"
#include "posattn/training/device_fleet.h"

namespace posattn {

bool DeviceFleet::compatible(const RunConfig& a, const RunConfig& b) {
  return model_spec(a) == model_spec(b) && a.batch == b.batch && a.precision == b.precision &&
         a.path == b.path && cuda::tested_at_once(a) == cuda::tested_at_once(b);
}

int64_t DeviceFleet::bytes_needed(const std::vector<RunConfig>& configs) {
  const cuda::FleetShape shape = cuda::fleet_shape(configs.front(), configs.size());
  int64_t samples = 0, steps = 0;
  for (const RunConfig& config : configs) {
    samples += config.samples;
    const int64_t sets = config.variable_length ? config.length : 1;
    steps += std::min(config.samples, config.samples / config.batch + sets);
  }
  // A run has weights, moments, their backup, and the gradient.
  constexpr int64_t copies = 2 * cuda::state_parts + 1;
  const int64_t parameters = ParameterLayout(shape.spec).buffer_size() * shape.slots;
  return cuda::step_engine_bytes(shape, network_path(configs.front())) +
         parameters * copies * int64_t{sizeof(float)} +
         cuda::FleetData::bytes_needed(shape.spec, shape.sample_stride(), shape.slots, samples) +
         (cuda::FleetValidation::supports(shape.spec)
              ? cuda::FleetValidation::bytes_needed(shape, configs)
              : 0) +
         DeviceNetwork::bytes_needed(shape.spec, cuda::tested_at_once(configs.front())) +
         steps * int64_t{sizeof(cuda::StepPlan)};
}

int64_t DeviceFleet::bytes_free() {
  std::size_t free = 0, total = 0;
  cuda::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<int64_t>(free);
}

}  // namespace posattn
