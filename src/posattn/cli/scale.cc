// posattn scale
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/bounds/bias_scaling.h"
#include "posattn/bounds/range_split.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/output_file.h"
#include "posattn/cli/scale_output.h"
#include "posattn/cli/terminal.h"

namespace posattn {
namespace {

struct ScaleFlags {
  std::vector<std::string> models;
  std::string scales = "1,2,3,5,10,20,30,50,100,200,300,500,1000", output;
  int64_t samples = 1000;
  uint64_t seed = 0;
  int threads = 0;
  bool json = false;
  ModelHints hints;
};

std::vector<double> scales_of(const ScaleFlags& flags) {
  constexpr double largest = 1e6;  // beyond, float has too few digits for what biases add
  std::vector<double> scales = parse_scales(flags.scales);
  for (const double c : scales) {
    if (c > largest) {
      throw Error(ExitCode::usage, fmt::format("--scales: {}", c),
                  fmt::format("up to {}", largest));
    }
  }
  return scales;
}

// Refuses a model that does not scale with its input, and names those that do.
void check_scaling(const std::vector<std::filesystem::path>& paths, const ModelHints& hints) {
  std::string problem;
  std::vector<std::string> scaling;
  for (const std::filesystem::path& path : paths) {
    const auto reason = bounds::scaling_broken_by(load_model(path, hints).spec);
    if (!reason) {
      scaling.push_back(path.string());
    } else if (problem.empty()) {
      problem = fmt::format("'{}' has {}", path.string(), *reason);
    }
  }
  if (problem.empty()) return;
  const size_t more = scaling.empty() ? 0 : scaling.size() - 1;
  throw Error(ExitCode::configuration, problem,
              "values alone in the input, attention that does not see their scale, ReLUs",
              scaling.empty() ? "as --architecture positional or scale-free"
              : more == 0     ? fmt::format("name {} alone", scaling[0])
                          : fmt::format("name those that scale: {} and {} more", scaling[0], more));
}

ScaledModel scaled_model(const std::filesystem::path& path, const std::vector<double>& scales,
                         const ScaleFlags& flags) {
  const Model model = load_model(path, flags.hints);
  if (model.origin.task.empty()) {
    throw Error(ExitCode::data,
                fmt::format("'{}' does not say which task it was made for", path.string()),
                "a task", "add --task NAME ('posattn tasks' lists them)");
  }
  const Task& task = task_of(model.origin, path.string());
  return {.path = path.string(),
          .spec = model.spec,
          .origin = model.origin,
          .split = bounds::split_range({.model = &model,
                                        .task = &task,
                                        .scales = scales,
                                        .samples = flags.samples,
                                        .seed = flags.seed,
                                        .threads = thread_count(flags.threads)})};
}

ExitCode scale_models(const ScaleFlags& flags) {
  constexpr int64_t most_samples = 1'000'000;
  if (flags.samples < 1 || flags.samples > most_samples) {
    throw Error(ExitCode::usage, fmt::format("--samples {}", flags.samples),
                fmt::format("1 to {}", most_samples));
  }
  check_ending("--output", flags.output, ".svg");
  refuse_with_standard_output(flags.output, flags.json, "--json");
  const std::vector<double> scales = scales_of(flags);
  std::vector<ScaledModel> models;
  const std::vector<std::filesystem::path> paths = find_named_models(flags.models);
  check_scaling(paths, flags.hints);
  for (const std::filesystem::path& path : paths) {
    models.push_back(scaled_model(path, scales, flags));
  }
  if (!flags.output.empty()) {
    const std::string figure = scale_figure(models);
    if (figure.empty()) {
      throw Error(ExitCode::failed, "no point can be drawn", "an error above 0 at some c");
    }
    write_result(flags.output, figure);
    if (is_standard_output(flags.output)) return ExitCode::done;
  }
  write_output(flags.json ? scale_json(models, flags.samples) : scale_text(models, flags.samples));
  if (!flags.json) say_written("figure", flags.output);
  return ExitCode::done;
}

void add_scale_options(CLI::App& command, ScaleFlags& flags) {
  argument(command, "MODEL", flags.models, "Model files, run folders or folders of runs")
      ->required();
  option(command, "--scales", flags.scales, "LIST [1,2,3,5,...,1000]", "Scales c, as 1..10,1000");
  add_output_option(command, flags.output, "A figure; '-': standard output", "FILE.svg");
  option(command, "--samples", flags.samples, "INT [1000]", "Samples");
  option(command, "--seed", flags.seed, "INT [0]", "Seed of the samples");
  add_threads_option(command, flags.threads);
  add_json_flag(command, flags.json);
  add_hint_flags(command, flags.hints);
}

const Command registered_scale(
    {.name = "scale",
     .group = Group::theory,
     .summary = "Split a model's error outside its training range into parts of weights and biases",
     .examples = {"posattn scale runs/sort/positional-seed0",
                  "posattn scale runs/sort/positional-seed0 runs/sort/homogeneous-seed0 "
                  "-o scale.svg",
                  "posattn scale sort.safetensors --scales 1..10,1000 --samples 10000 --json"},
     .details = "With values alone in the input, attention that does not see their scale and "
                "ReLUs, a network "
                "with biases b satisfies f_b(c x) = c f_(b/c)(x). Far outside its range it behaves "
                "as if it had no biases (docs/bounds-range.md). `evaluate` draws new samples for "
                "each c; this command multiplies the same samples by c. Models and tasks that do "
                "not scale with their input are refused with exit code 3."},
    add_scale_options, scale_models);

}  // namespace
}  // namespace posattn
