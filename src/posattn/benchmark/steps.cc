#include "posattn/benchmark/steps.h"

#include "posattn/kernels/operations.h"
#include "posattn/tasks/dataset.h"
#include "posattn/training/optimiser.h"

namespace posattn {
namespace {

struct Setting {
  ModelSpec spec;
  Dataset data;
  Parameters<float> parameters;
  Network network;

  explicit Setting(const StepRequest& request)
      : spec(make_spec(request)),
        data(make_data(request)),
        parameters(spec),
        network(spec, {request.path, request.threads, request.tile}) {
    initialise(parameters, 0);
  }
  static ModelSpec make_spec(const StepRequest& request) {
    ModelSpec spec;
    spec.real_nodes = request.length;
    spec.depth = default_depth(request.length);
    apply_preset(request.architecture, spec);
    return resolve(spec);
  }
  static Dataset make_data(const StepRequest& request) {
    DatasetRequest wanted;
    wanted.task = &find_task("cumulative-sum");
    wanted.length = request.length;
    wanted.samples = request.batch;
    wanted.range = training_range(2, false);
    wanted.threads = request.threads;
    return make_dataset(wanted);
  }
  Batch batch() const { return {data.inputs, data.targets, data.samples, spec.real_nodes}; }
  StepResult result(const StepRequest& request, double flops_each, Timing timing) const {
    const Network::Work work = network.work();
    const auto samples = static_cast<double>(request.batch);
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
  Parameters<float> gradient(setting.parameters.shared_layout());
  OptimiserState<float> state(setting.parameters.shared_layout());
  const OptimiserOptions adam;
  const Timing timing = time_repeated(
      [&] {
        setting.network.gradient(setting.parameters, setting.batch(), {}, gradient);
        optimiser_step(adam, 5e-4, gradient, state, setting.parameters);
      },
      request.repetitions, request.seconds);
  return setting.result(request, 6, timing);
}

StepResult measure_inference(const StepRequest& request) {
  Setting setting(request);
  std::vector<float> outputs(setting.data.targets.size());
  const Timing timing =
      time_repeated([&] { setting.network.forward(setting.parameters, setting.batch(), outputs); },
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

}  // namespace posattn
