#include "posattn/benchmark/steps.h"

#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "posattn/evaluation/measure.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/kernels/operations.h"
#include "posattn/model/network.h"
#include "posattn/training/run_parts.h"

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

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

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

}  // namespace posattn
