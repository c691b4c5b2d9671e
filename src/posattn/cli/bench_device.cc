#include "posattn/cli/bench_device.h"

#include <fmt/format.h>

#include "posattn/base/version.h"
#include "posattn/benchmark/steps.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/text_table.h"
#include "posattn/report/plot/figure.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {
namespace {

// The paper's numeric tasks have 30000 samples, 1000 a step.
constexpr int64_t epoch_steps = 30;

constexpr double most_matrix_bytes = 4e9;
// Factors are found once, but every number of the matrices is looked at, and features need
// thousands of transforms: minutes beyond this.
constexpr int most_slow = 1 << 14;

bool left_out(const std::string& positions, bool as_written, int length) {
  return as_written ? matrix_bytes(length) > most_matrix_bytes
                    : positions != "relative" && length > most_slow;
}

}  // namespace

double four_digits(double value) { return std::stod(fmt::format("{:.4g}", value)); }

std::string four_digits_text(const Json& value) {
  return fmt::format("{:.4g}", value.get<double>());
}

Json measure_device_steps(const DeviceBenchOptions& options) {
  const Machine machine = find_machine();
  Json rows = Json::array();
  for (RunConfig config : options.configs) {
    config.samples = epoch_steps * config.batch;
    config.device = "cuda";
    for (const std::string& precision : options.precisions) {
      for (const int runs : options.runs) {
        config.precision = precision;
        validate(config);
        const DeviceTiming timing = time_device_steps(config, runs, options.seconds);
        const double per_run = 1e6 / runs;
        rows.push_back({{"task", config.task},
                        {"architecture", config.architecture},
                        {"length", config.length},
                        {"layers", model_spec(config).depth},
                        {"batch", config.batch},
                        {"seeds", runs},
                        {"precision", precision},
                        {"engine", timing.engine},
                        {"us_per_step_and_seed", four_digits(timing.microseconds_per_seed())},
                        {"us_lower_quartile", four_digits(timing.step.lower_quartile * per_run)},
                        {"us_upper_quartile", four_digits(timing.step.upper_quartile * per_run)},
                        {"repetitions", timing.step.repetitions},
                        {"gflops", four_digits(timing.gflops())}});
      }
    }
  }
  const DeviceCeilings ceilings = measure_device_ceilings();  // the GPU is warm now
  return {{"device_steps", rows},
          {"ceilings",
           {{"copy_terabytes_per_second", four_digits(ceilings.copy_bytes / 1e12)},
            {"tf32_tensor_teraflops", four_digits(ceilings.tensor_flops / 1e12)},
            {"fp32_teraflops", four_digits(ceilings.fp32_flops / 1e12)}}},
          {"device", device_json(machine.gpu)},
          {"machine",
           {{"cpu", machine.cpu},
            {"compiler", build_info().compiler},
            {"flags", build_info().flags},
            {"version", build_info().version},
            {"commit", build_info().commit}}}};
}

std::string device_steps_text(const Json& result) {
  const Json& device = result["device"];
  std::string text = fmt::format(
      "{}, driver for CUDA {}, built with CUDA {}\n\n", device["name"].get<std::string>(),
      device["driver"].get<std::string>(), device["toolkit"].get<std::string>());
  const Json& ceilings = result["ceilings"];
  return text +
         json_table(result["device_steps"],
                    {{"training step", "architecture"},
                     {"precision", "precision"},
                     {"engine", "engine"},
                     {"length", "length"},
                     {"layers", "layers"},
                     {"batch", "batch"},
                     {"runs", "seeds"},
                     {"us per step and run", "us_per_step_and_seed"},
                     {"GFLOP/s", "gflops"}},
                    3) +
         fmt::format(
             "\nGFLOP/s: nominal flops over the median time. Ceilings measured in this run: copy "
             "{} "
             "TB/s (read and written), tensor core {} TFLOP/s (tf32, mma.sync), fp32 {} TFLOP/s.\n",
             four_digits_text(ceilings["copy_terabytes_per_second"]),
             four_digits_text(ceilings["tf32_tensor_teraflops"]),
             four_digits_text(ceilings["fp32_teraflops"]));
}

Json measure_long(const std::vector<int>& lengths, int threads, double seconds) {
  Json rows = Json::array();
  for (const char* positions : {"relative", "sinusoidal", "kernel"}) {
    for (const bool as_written : {true, false}) {
      for (const int length : lengths) {
        if (left_out(positions, as_written, length)) continue;
        const LongInference time = measure_long_inference({.positions = positions,
                                                           .as_written = as_written,
                                                           .length = length,
                                                           .threads = threads,
                                                           .seconds = seconds});
        rows.push_back({{"positions", positions},
                        {"form", as_written ? "matrices" : "chosen"},
                        {"length", length},
                        {"ms_per_sample", four_digits(time.sample_seconds * 1e3)},
                        {"ms_once", four_digits(time.prepare_seconds * 1e3)}});
      }
    }
  }
  return rows;
}

std::string long_figure(const Json& rows) {
  FigureRequest request{.name = "long",
                        .title = "Time of inference against the length of the input",
                        .x_label = "length n",
                        .y_label = "ms a sample, four layers",
                        .markers = true,
                        .lines = {},
                        .logarithmic_x = true};
  for (const Json& row : rows) {
    const std::string label = fmt::format("{}, {}", row["positions"].get<std::string>(),
                                          row["form"] == "matrices" ? "by matrices" : "as chosen");
    if (request.lines.empty() || request.lines.back().label != label) {
      const int style = style_of(
          row["positions"] == "sinusoidal" ? "positional" : row["positions"].get<std::string>(),
          row["form"] == "matrices" ? Shade::pale : Shade::plain);
      request.lines.push_back({.label = label, .style = style, .points = {}});
    }
    const double time = row["ms_per_sample"];
    request.lines.back().points.push_back({row["length"], time, time, time});
  }
  return draw_figure(request);
}

}  // namespace posattn
