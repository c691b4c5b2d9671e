// posattn simulate-standard

#include <algorithm>
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
  std::optional<int> table_size, copies, length;
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
          .copies = flags.copies,
          .length = flags.length,
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
  const simulation::KeyPlan& plan = result.plan;
  std::string text = fmt::format(
      "{}, length {}: a standard Transformer of N = {} nodes and L = {} layers as a positional "
      "one\n"
      "copies  k = {} of each node, each with up to {} keys\n"
      "nodes   {} = N k + 1, with one that stays zero\n"
      "layers  {} = {} x {}{}: {} that take in a key, {} that combine the copies' sums, and {}\n"
      "width   {}, hidden units {}, weights that are not zero {}\n\n",
      original.origin.task, result.model.origin.length, plan.nodes, from.depth, plan.copies,
      std::min(plan.steps(), plan.nodes), copy.nodes(), copy.depth, from.depth, plan.layers(),
      plan.copies > 1 ? " + 1 that hands out the inputs" : "", plan.steps(), plan.rounds(),
      plan.layers() - plan.steps() - plan.rounds(), copy.width, copy.mlp_width,
      result.nonzero_weights);
  TextTable tables({"layer", "products", "channels", "A: squares", "G: log", "S: softplus",
                    "D: exp", "hidden units"},
                   0);
  for (size_t l = 0; l < result.layers.size(); ++l) {
    const simulation::SimulatedLayer& layer = result.layers[l];
    std::vector<std::string> row = {std::to_string(l),
                                    fmt::format("{} of {}", layer.products, layer.full_products),
                                    fmt::format("{} of {}", layer.channels, layer.full_channels)};
    for (const int pieces : layer.pieces) row.push_back(std::to_string(pieces));
    row.push_back(std::to_string(layer.units.most()));
    tables.add_row(std::move(row));
  }
  text += "pieces of each table, calibrated on values in " +
          fmt::format("[-{0}, {0}]:\n", original.origin.range * options.scale) + tables.to_string();
  std::vector<std::string> columns = {"values",  "error",         "largest",  "control",
                                      "outside", "MSE, original", "MSE, copy"};
  if (result.classes) {
    columns.resize(columns.size() - 2);
    columns.insert(columns.end(), {"right, original", "right, copy", "same class"});
  }
  TextTable checks(columns);
  const auto add_check = [&](const std::string& values, const simulation::SimulationCheck& check) {
    std::vector<std::string> row = {values, percent(check.error), percent(check.largest),
                                    percent(check.control), percent(check.outside)};
    for (const double answer : {check.answers.original, check.answers.copy}) {
      row.push_back(result.classes ? percent(answer) : short_number(answer));
    }
    if (result.classes) row.push_back(fmt::format("{:.2f} %", 100 * check.same_class));
    checks.add_row(std::move(row));
  };
  add_check("as calibrated", result.check);
  for (size_t k = 0; k < options.scales.size(); ++k) {
    add_check(fmt::format("c = {}", options.scales[k]), result.scale_checks[k]);
  }
  text += fmt::format(
      "\n{} fresh inputs; errors in standard deviations of the original's outputs; control: the\n"
      "original with its attention frozen at its mean, which is no simulation at all:\n{}"
      "bound: no error above {} on any input inside the tables whose errors grow as in calibration "
      "(docs/expressivity.md)\n",
      options.samples, checks.to_string(), percent(result.bound));
  return text;
}

Json check_json(const simulation::SimulationCheck& check, bool classes) {
  Json found = {{"error", check.error},
                {"largest_error", check.largest},
                {"control", check.control},
                {"outside", check.outside},
                {classes ? "original_accuracy" : "original_mse", check.answers.original},
                {classes ? "copy_accuracy" : "copy_mse", check.answers.copy}};
  if (classes) found["same_class"] = check.same_class;
  return found;
}

Json simulation_json(const Simulation& result, const Model& original,
                     const SimulationOptions& options) {
  const ModelSpec &copy = result.model.spec, &from = original.spec;
  Json layers = Json::array(), scales = Json::array();
  for (const simulation::SimulatedLayer& layer : result.layers) {
    Json pieces;
    for (int function = 0; function < simulation::function_count; ++function) {
      pieces[std::string(letter_of(static_cast<simulation::Function>(function)))] =
          layer.pieces[function];
    }
    layers.push_back({{"products", layer.products},
                      {"channels", layer.channels},
                      {"table_sizes", pieces},
                      {"hidden", layer.units.most()}});
  }
  for (size_t k = 0; k < options.scales.size(); ++k) {
    Json scale = {{"c", options.scales[k]}};
    scale.update(check_json(result.scale_checks[k], result.classes));
    scales.push_back(std::move(scale));
  }
  return {{"task", original.origin.task},
          {"length", result.model.origin.length},
          {"original", {{"nodes", result.plan.nodes}, {"layers", from.depth}}},
          {"calibrated_range", original.origin.range * options.scale},
          {"copies", result.plan.copies},
          {"nodes", copy.nodes()},
          {"layers", copy.depth},
          {"width", copy.width},
          {"hidden", copy.mlp_width},
          {"nonzero_weights", result.nonzero_weights},
          {"original_layers", layers},
          {"bound", result.bound},
          {"check", check_json(result.check, result.classes)},
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
  option(command, "--copies", flags.copies, "INT",
         "Copies k of each node, 1 to N; default: about the root of N, nearly as few layers as N "
         "copies have and nearly as little work as one");
  option(command, "--at-length", flags.length, "INT",
         "Length n that the copy is for, of a model that knows several; default: its longest");
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
                  "posattn simulate-standard standard.safetensors -o copy.safetensors --copies 1 "
                  "--tolerance 0.001",
                  "posattn simulate-standard standard.safetensors -o copy.safetensors "
                  "--table-size 64 --scales 1,2,3,5,10"},
     .details = "A positional Transformer with N k + 1 nodes does what a standard one with N nodes "
                "does (docs/expressivity.md): --copies 1 has N + 1 nodes and N + 3 layers for each "
                "of the original's, as many copies as nodes have the sizes of Remark 5.1. "
                "Attention is computed by tables in the MLPs. They are fitted to values that occur "
                "on the model's task; elsewhere the copy may answer anything. Models of tokens, of "
                "classes and with RoPE (--copies 1) have copies too, those with LayerNorm have "
                "none. The exit code is 6 when fresh inputs miss the tolerance."},
    add_simulate_standard_options, simulate_model);

}  // namespace
}  // namespace posattn
