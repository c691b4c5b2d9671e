#include "posattn/benchmark/device_steps.h"

#include <algorithm>
#include <thread>

#include "posattn/model/network.h"
#include "posattn/training/device_fleet.h"
#include "posattn/training/run_parts.h"

namespace posattn {

DeviceTiming time_device_steps(RunConfig config, int seeds, double seconds) {
  constexpr double measured_seconds = 0.02;  // of one measurement: many steps
  std::vector<DeviceRun> runs;
  for (int seed = 0; seed < seeds; ++seed) {
    config.seed = seed;
    runs.push_back({config, initial_state(config)});
  }
  DeviceFleet fleet(runs, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
  const double one_step = fleet.time_steps(static_cast<int>(fleet.steps_per_epoch(0)));
  const int steps = static_cast<int>(std::clamp(measured_seconds / one_step, 1.0, 10000.0));
  DeviceTiming result;
  result.engine = fleet.engine();
  result.seeds = seeds;
  result.step = time_repeated([&] { fleet.time_steps(steps); }, 5, seconds);
  for (double* time :
       {&result.step.median, &result.step.lower_quartile, &result.step.upper_quartile}) {
    *time /= steps;
  }
  const Network::Work work = Network(model_spec(config)).work();
  result.nominal_flops =
      6.0 * seeds *
      (work.nominal_per_sample * static_cast<double>(config.batch) + work.nominal_per_step);
  return result;
}

}  // namespace posattn
