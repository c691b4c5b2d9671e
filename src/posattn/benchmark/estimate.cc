#include "posattn/benchmark/estimate.h"

#include <map>

#include "posattn/benchmark/device_steps.h"
#include "posattn/benchmark/steps.h"
#include "posattn/model/network.h"

namespace posattn {
namespace {

double speed_of(const char* architecture, const std::string& device, const std::string& precision,
                int threads) {
  constexpr double seconds = 0.4;
  RunConfig config;
  config.architecture = architecture;
  if (device == "cuda") {
    config.precision = precision;
    constexpr int seeds = 10;
    return time_device_steps(config, seeds, seconds).gflops() * 1e9;
  }
  StepRequest request;
  request.config = config;
  request.threads = threads;
  request.seconds = seconds;
  return measure_training_step(request).gflops() * 1e9;
}

// The work of one step of a whole batch.
double nominal_flops(const RunConfig& config) {
  const ModelSpec spec = model_spec(config);
  const Network::Work work = Network(spec, {Path::automatic, 1, 0}).work();
  const double share = config.variable_length ? 0.5 : 1;  // lengths 1..n
  constexpr double flops = 6;                             // per multiply-add, of training
  return flops * (work.nominal_per_sample * share * static_cast<double>(config.batch) +
                  work.nominal_per_step);
}

}  // namespace

MachineSpeed measure_speed(const std::string& device, const std::string& precision, int threads) {
  return {speed_of("positional", device, precision, threads),
          speed_of("standard", device, precision, threads)};
}

double estimated_seconds(const std::vector<RunConfig>& runs, const MachineSpeed& speed) {
  std::map<std::string, double> of_shape;  // seconds per sample; seeds and tasks share it
  double seconds = 0;
  for (const RunConfig& run : runs) {
    RunConfig shape = run;
    shape.seed = 0;
    shape.samples = shape.batch;
    const auto [place, added] = of_shape.try_emplace(to_json(shape), 0);
    if (added) {
      const bool from_data = model_spec(run).attends_by_data();
      place->second = nominal_flops(run) / static_cast<double>(run.batch) /
                      (from_data ? speed.from_data : speed.from_positions);
    }
    seconds += place->second * static_cast<double>(run.samples) * static_cast<double>(run.epochs);
  }
  return seconds;
}

}  // namespace posattn
