#include "posattn/benchmark/steps.h"

#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "posattn/evaluation/measure.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/kernels/operations.h"
#include "posattn/model/network.h"
#include "posattn/training/device_fleet.h"
#include "posattn/training/run.h"

namespace posattn {
namespace {

struct Setting {
  Dataset data;
  RunState state;
  Network network;

  explicit Setting(const StepRequest& request)
      : data(make_data(request)),
        state(initial_state(request.config)),
        network(model_spec(request.config),
                {network_path(request.config), request.threads, request.tile}) {}
  static Dataset make_data(const StepRequest& request) {
    RunConfig config = request.config;
    config.samples = config.batch;
    return std::move(training_data(config, 1, request.threads).front());
  }
  Batch batch() const { return batch_of(data); }
  StepResult result(const StepRequest& request, double flops_each, Timing timing) const {
    const Network::Work work = network.work();
    const auto samples = static_cast<double>(request.config.batch);
    StepResult r;
    r.request = request;
    r.timing = timing;
    r.per_step_flops = flops_each * work.nominal_per_step;
    r.nominal_flops = flops_each * (work.nominal_per_sample * samples + work.nominal_per_step);
    r.arithmetic_flops = flops_each * (work.actual_per_sample * samples + work.actual_per_step);
    return r;
  }
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ModelSpec long_model(const std::string& positions, int length) {
  ModelSpec spec;
  apply_preset(positions == "sinusoidal" ? "positional" : positions, spec);
  if (positions == "sinusoidal") spec.encoding = Encoding::sinusoidal;
  spec.real_nodes = length;
  return resolve(spec);
}

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

StepResult measure_training_step(const StepRequest& request) {
  Setting setting(request);
  Parameters<float>& parameters = setting.state.parameters;
  Parameters<float> gradient(parameters.shared_layout());
  const OptimiserOptions optimiser = optimiser_options(request.config);
  const Timing timing = time_repeated(
      [&] {
        setting.network.gradient(parameters, setting.batch(), {}, gradient);
        if (request.config.clip > 0) clip_gradient(request.config.clip, gradient);
        optimiser_step(optimiser, request.config.lr, gradient, setting.state.optimiser, parameters);
      },
      request.repetitions, request.seconds);
  return setting.result(request, 6, timing);
}

StepResult measure_inference(const StepRequest& request) {
  Setting setting(request);
  std::vector<float> outputs(setting.data.samples * setting.data.shape.target_count());
  const Timing timing = time_repeated(
      [&] { setting.network.forward(setting.state.parameters, setting.batch(), outputs); },
      request.repetitions, request.seconds);
  return setting.result(request, 2, timing);
}

std::vector<OperationResult> measure_operations() {
  std::vector<OperationResult> results;
  const TileKernels& kernels = tile_kernels();
  for (const Operation& operation : operations()) {
    const Sizes& sizes = operation.paper_sizes;
    Operands<float> inputs, dinputs;
    for (const int64_t count : operation.input_counts(sizes)) {
      inputs.emplace_back(count, 0.5f);
      dinputs.emplace_back(count);
    }
    Buffer<float> output(operation.output_count(sizes)), doutput(output.size(), 0.25f);
    const double work = 2 * operation.multiply_adds(sizes);
    const auto add = [&](const char* direction, double flops, const std::function<void()>& run) {
      const Timing timing = time_repeated(run, 50, 0.05);
      results.push_back(
          {operation.name, direction, timing.median * 1e6, flops / timing.median / 1e9});
    };
    add("forward", work, [&] { operation.cpu(kernels, sizes, inputs, output); });
    if (operation.cpu_gradient) {
      add("gradient", 2 * work,
          [&] { operation.cpu_gradient(kernels, sizes, inputs, output, doutput, dinputs); });
    }
  }
  return results;
}

Timing time_repeated(const std::function<void()>& action, int repetitions, double seconds) {
  for (int i = 0; i < 3; ++i) action();
  std::vector<double> times;
  const double begin = now();
  while (static_cast<int>(times.size()) < repetitions || now() - begin < seconds) {
    const double start = now();
    action();
    times.push_back(now() - start);
  }
  std::sort(times.begin(), times.end());
  const size_t n = times.size();
  return {times[n / 2], times[n / 4], times[n - 1 - n / 4], static_cast<int>(n)};
}

double measure_peak_gflops(int threads, double seconds) {
  // Rounds about as long as a training step, and their median, as for the steps themselves.
  std::vector<double> rates;
  const double begin = now();
  while (now() - begin < seconds) {
    double flops = 0;
    const double start = now();
#pragma omp parallel num_threads(threads) reduction(+ : flops)
    flops += tile_kernels().multiply_add_peak(4'000'000);
    rates.push_back(flops / (now() - start) / 1e9);
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

double peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  constexpr double unit = 1;
#else
  constexpr double unit = 1024;
#endif
  return static_cast<double>(usage.ru_maxrss) * unit;
}

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

double matrix_bytes(int length) {
  const ModelSpec spec = long_model("relative", length);
  const double nodes = spec.nodes();
  return sizeof(float) * nodes * nodes * spec.heads * spec.depth;
}

LongInference measure_long_inference(const LongInferenceRequest& request) {
  const ModelSpec spec = long_model(request.positions, request.length);
  Parameters<float> parameters(spec);
  initialise(parameters, 0);
  std::vector<float> input(request.length), output(request.length);
  for (int i = 0; i < request.length; ++i) input[i] = static_cast<float>(i % 7 - 3);
  Network network(spec, {.path = request.as_written ? Path::plain : Path::automatic,
                         .threads = request.threads});
  LongInference result;
  const auto start = std::chrono::steady_clock::now();
  network.prepare(parameters, request.length);
  result.prepare_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Batch batch{.inputs = input, .samples = 1, .real_nodes = request.length};
  result.sample_seconds =
      time_repeated([&] { network.run(batch, output); }, 3, request.seconds).median;
  return result;
}

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
