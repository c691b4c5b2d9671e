// posattn simulate-standard

#include <cmath>

#include "posattn/base/text.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/simulation/simulate.h"

namespace posattn {
namespace {

using simulation::Simulation;
using simulation::SimulationOptions;

struct SimulateFlags {
  std::string model, output, scales;
  double range = 1, tolerance = 0.01;
  std::optional<int> table_size;
  int64_t samples = 1000;
  uint64_t seed = 0;
  int threads = 0;
  bool json = false;
  ModelHints hints;
};

SimulationOptions simulation_options(const SimulateFlags& flags) {
  if (!(flags.range > 0) || !std::isfinite(flags.range)) {
    throw Error(ExitCode::usage, fmt::format("--range {}", flags.range), "a number above 0");
  }
  constexpr double least_tolerance = 1e-5;  // fp32 itself adds a few 1e-6
  if (!(flags.tolerance >= least_tolerance && flags.tolerance < 1)) {
    throw Error(ExitCode::usage, fmt::format("--tolerance {}", flags.tolerance),
                fmt::format("{} to 1, as 0.01", least_tolerance),
                "in standard deviations of the model's outputs");
  }
  if (flags.table_size && (*flags.table_size < simulation::fewest_pieces ||
                           *flags.table_size > simulation::most_pieces)) {
    throw Error(ExitCode::usage, fmt::format("--table-size {}", *flags.table_size),
                fmt::format("{} to {}", simulation::fewest_pieces, simulation::most_pieces));
  }
  if (flags.samples < 100 || flags.samples > 100'000) {
    throw Error(ExitCode::usage, fmt::format("--samples {}", flags.samples), "100 to 100000");
  }
  return {.scale = flags.range,
          .tolerance = flags.tolerance,
          .table_size = flags.table_size,
          .samples = flags.samples,
          .seed = flags.seed,
          .threads = thread_count(flags.threads),
          .scales = flags.scales.empty() ? std::vector<double>{} : parse_scales(flags.scales)};
}

std::string percent(double share) {
  return share < 0.1 ? fmt::format("{:.2g} %", 100 * share) : fmt::format("{:.0f} %", 100 * share);
}

std::string simulation_text(const Simulation& result, const Model& original,
                            const SimulationOptions& options) {
  const ModelSpec &copy = result.model.spec, &from = original.spec;
  const int steps = simulation::layers_each(from.nodes()) - 5;
  std::string text = fmt::format(
      "{}, length {}: a standard Transformer of N = {} nodes and L = {} layers as a positional "
      "one\n"
      "nodes   {} = N^2 + 1, one for each pair and a scratch node; the Remark's O(N^2)\n"
      "layers  {} = L (5 + ceil(log2 N)) = {} x {}, of which {} find the largest score of each "
      "row;\n"
      "        the Remark's O(L log N)\n"
      "width   {}, hidden units {}, weights that are not zero {}\n\n",
      original.origin.task, original.origin.length, from.nodes(), from.depth, copy.nodes(),
      copy.depth, from.depth, 5 + steps, from.depth * steps, copy.width, copy.mlp_width,
      result.nonzero_weights);
  TextTable tables(
      {"layer", "products", "channels", "A: squares", "B: exp", "C: log", "D: exp", "hidden units"},
      0);
  for (size_t l = 0; l < result.layers.size(); ++l) {
    const simulation::SimulatedLayer& layer = result.layers[l];
    const auto pieces = [&](simulation::Use use) {
      return std::to_string(layer.pieces[static_cast<int>(use)]);
    };
    tables.add_row({std::to_string(l), fmt::format("{} of {}", layer.products, layer.full_products),
                    fmt::format("{} of {}", layer.channels, layer.full_channels),
                    pieces(simulation::Use::score), pieces(simulation::Use::exponential),
                    pieces(simulation::Use::normaliser), pieces(simulation::Use::weighted_value),
                    std::to_string(layer.units.most())});
  }
  text += "pieces of each table, calibrated on values in " +
          fmt::format("[-{0}, {0}]:\n", original.origin.range * options.scale) + tables.to_string();
  TextTable checks(
      {"values", "error", "largest", "control", "outside", "MSE, original", "MSE, copy"});
  const auto add_check = [&](const std::string& values, const simulation::SimulationCheck& check) {
    checks.add_row({values, percent(check.error), percent(check.largest), percent(check.control),
                    percent(check.outside), short_number(check.original_mse),
                    short_number(check.copy_mse)});
  };
  add_check("as calibrated", result.check);
  for (size_t k = 0; k < options.scales.size(); ++k) {
    add_check(fmt::format("c = {}", options.scales[k]), result.scale_checks[k]);
  }
  text += fmt::format(
      "\n{} fresh inputs; errors in standard deviations of the original's outputs; control: the\n"
      "original with its attention frozen at its mean, which is no simulation at all:\n{}",
      options.samples, checks.to_string());
  return text;
}

Json check_json(const simulation::SimulationCheck& check) {
  return {{"error", check.error},
          {"largest_error", check.largest},
          {"control", check.control},
          {"outside", check.outside},
          {"original_mse", check.original_mse},
          {"copy_mse", check.copy_mse}};
}

Json simulation_json(const Simulation& result, const Model& original,
                     const SimulationOptions& options) {
  const ModelSpec &copy = result.model.spec, &from = original.spec;
  Json layers = Json::array(), scales = Json::array();
  for (const simulation::SimulatedLayer& layer : result.layers) {
    Json pieces;
    for (int use = 0; use < simulation::uses; ++use) {
      pieces[std::string(letter_of(static_cast<simulation::Use>(use)))] = layer.pieces[use];
    }
    layers.push_back({{"products", layer.products},
                      {"channels", layer.channels},
                      {"table_sizes", pieces},
                      {"hidden", layer.units.most()}});
  }
  for (size_t k = 0; k < options.scales.size(); ++k) {
    Json scale = {{"c", options.scales[k]}};
    scale.update(check_json(result.scale_checks[k]));
    scales.push_back(std::move(scale));
  }
  return {{"task", original.origin.task},
          {"length", original.origin.length},
          {"original", {{"nodes", from.nodes()}, {"layers", from.depth}}},
          {"calibrated_range", original.origin.range * options.scale},
          {"nodes", copy.nodes()},
          {"layers", copy.depth},
          {"width", copy.width},
          {"hidden", copy.mlp_width},
          {"nonzero_weights", result.nonzero_weights},
          {"original_layers", layers},
          {"check", check_json(result.check)},
          {"scales", scales}};
}

ExitCode simulate_model(const SimulateFlags& flags) {
  refuse_with_standard_output(flags.output, flags.json, "--json");
  const SimulationOptions options = simulation_options(flags);
  const std::filesystem::path path =
      find_model(flags.model, [](const std::filesystem::path& model) {
        return preset_name(load_model(model).spec) == "standard";
      });
  const Model original = read_model(path, flags.hints);
  const Simulation result = simulation::simulate_standard(original, path.string(), options);
  write_result(flags.output, model_bytes(result.model));
  if (!is_standard_output(flags.output)) {
    if (flags.json) {
      Json document = {{"model", flags.output}};
      document.update(simulation_json(result, original, options));
      write_output(json_text(document));
    } else {
      write_output(fmt::format("{}\nwritten to {}\nnext:  posattn evaluate {} {}\n",
                               simulation_text(result, original, options), flags.output,
                               path.string(), flags.output));
    }
  }
  const double error = result.check.error;
  if (flags.table_size || error <= flags.tolerance) return ExitCode::done;
  flush_output();
  throw Error(ExitCode::verification,
              fmt::format("on fresh inputs the error is {}", percent(error)),
              fmt::format("at most {}", percent(flags.tolerance)),
              "more --samples, on which table sizes are chosen");
}

void add_simulate_standard_options(CLI::App& command, SimulateFlags& flags) {
  argument(command, "MODEL", flags.model, "A trained standard model: a file or a run folder")
      ->required();
  add_output_option(command, flags.output, "The model file; '-': standard output", "FILE")
      .required();
  CLI::Option* tolerance = option(command, "--tolerance", flags.tolerance, "NUMBER [0.01]",
                                  "Root mean square error, in standard deviations of the outputs");
  option(command, "--table-size", flags.table_size, "INT", "Pieces of every table instead")
      ->excludes(tolerance);
  option(command, "--range", flags.range, "NUMBER [1]",
         "Calibrate on values in [-range c, range c] of the training range, for this c");
  option(command, "--scales", flags.scales, "LIST", "Check on fresh inputs at these c too");
  option(command, "--samples", flags.samples, "INT [1000]",
         "For calibration, for choices, for each check");
  option(command, "--seed", flags.seed, "INT [0]", "Seed of these samples");
  add_threads_option(command, flags.threads);
  add_json_flag(command, flags.json);
  add_hint_flags(command, flags.hints);
}

const Command registered_simulate_standard(
    {.name = "simulate-standard",
     .group = Group::theory,
     .summary = "Build a positional Transformer that computes what a standard one does",
     .examples = {"posattn simulate-standard runs/sort/standard-seed0 -o copy.safetensors",
                  "posattn simulate-standard standard.safetensors -o copy.safetensors "
                  "--tolerance 0.001",
                  "posattn simulate-standard standard.safetensors -o copy.safetensors "
                  "--table-size 64 --scales 1,2,3,5,10"},
     .details = "This is the construction of Remark 5.1: a node for each pair of nodes, and "
                "attention by tables in the MLPs (docs/expressivity.md). The tables are fitted to "
                "values that occur on the model's task; elsewhere the copy may answer anything. "
                "The exit code is 6 when fresh inputs miss the tolerance."},
    add_simulate_standard_options, simulate_model);

}  // namespace
}  // namespace posattn
