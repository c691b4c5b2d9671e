// posattn bound
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "posattn/base/error.h"
#include "posattn/bounds/bound_report.h"
#include "posattn/cli/bound_output.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/terminal.h"

namespace posattn {
namespace {

struct BoundFlags {
  std::vector<std::string> models;
  bounds::ReportRequest request;
  int threads = 0;
  bool norms = false, json = false;
  ModelHints hints;
};

// The settings that lie beside a run's model; nothing for a model file alone.
std::optional<RunConfig> run_of(const std::filesystem::path& model) {
  const std::filesystem::path file = model.parent_path() / "config.toml";
  std::error_code ignored;
  if (model.filename() != "model.safetensors" || !std::filesystem::exists(file, ignored)) return {};
  return read_config_file(file).config;
}

std::vector<bounds::BoundReport> reports_of(const BoundFlags& flags) {
  std::vector<bounds::BoundReport> reports;
  for (const std::string& name : flags.models) {
    for (const std::filesystem::path& path : find_models(name).models) {
      bounds::ReportRequest request = flags.request;
      request.run = run_of(path);
      request.name = request.run ? path.parent_path().string() : path.string();
      request.threads = thread_count(flags.threads);
      reports.push_back(bound_report(read_model(path, flags.hints), request));
    }
  }
  return reports;
}

ExitCode print_bounds(const BoundFlags& flags) {
  const std::vector<bounds::BoundReport> reports = reports_of(flags);
  if (flags.json) {
    nlohmann::ordered_json models = nlohmann::ordered_json::array();
    for (const bounds::BoundReport& report : reports) models.push_back(bound_json(report));
    write_output(nlohmann::ordered_json{{"models", models}}.dump(2) + "\n");
  } else if (reports.size() == 1 || flags.norms) {
    for (const bounds::BoundReport& report : reports) {
      write_output((&report == reports.data() ? "" : "\n") + bound_text(report, flags.norms));
    }
  } else {
    write_output(bound_table(reports));
  }
  return ExitCode::done;
}

}  // namespace

void add_bound(CommandLine& command_line) {
  auto flags = std::make_shared<BoundFlags>();
  bounds::ReportRequest& request = flags->request;
  CLI::App& command = add_command(
      command_line,
      {.name = "bound",
       .description = "What theory promises of a trained model's generalisation, beside the fact",
       .examples = {"posattn bound runs/sort/positional-seed0", "posattn bound runs/sort",
                    "posattn bound model.safetensors --samples 30000 --norms"},
       .details =
           "Bounds on |risk - training loss| from the weights, by norms and by the number of\n"
           "parameters, factor by factor (docs/bounds.md). Of a run the gap is measured, too:\n"
           "its own training set against fresh samples. Several models: a line for each."},
      [flags] { return print_bounds(*flags); });
  command.add_option("MODEL", flags->models, "Model files, run folders, folders of runs")
      ->required()
      ->type_name("");
  command.add_option("--samples", request.samples, "Training samples m; of a run: its own")
      ->option_text("INT");
  command.add_option("--delta", request.delta, "Bounds hold with probability 1 - delta")
      ->option_text("NUMBER [0.05]");
  command.add_option("--clip", request.clip, "b: squared errors count up to b^2")
      ->option_text("NUMBER [1]");
  command.add_option("--range", request.range, "R: inputs lie in [-R, R]; as trained")
      ->option_text("NUMBER");
  command.add_option("--fresh-samples", request.fresh_samples, "For the measured gap")
      ->option_text("INT [100000]");
  command
      .add_option("--query-key-scale", request.query_key_scale,
                  "Multiply W_Q and W_K by this first, in the bounds")
      ->option_text("NUMBER [1]");
  command.add_flag("--norms", flags->norms, "All norms of all matrices, too");
  command.add_option("--threads", flags->threads, "Threads to use; 0: one per core")
      ->option_text("INT [0]");
  add_json_flag(command, flags->json);
  add_hint_flags(command, flags->hints);
}

}  // namespace posattn
