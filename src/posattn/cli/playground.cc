// posattn playground
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "posattn/cli/commands.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/output_file.h"
#include "posattn/cli/playground_page.h"
#include "posattn/cli/program_input.h"
#include "posattn/cli/terminal.h"
#include "posattn/programs/lowering/compile.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {
namespace {

struct PlaygroundFlags {
  std::vector<std::string> models;
  std::string program, settings, output = "playground.html", page;
  std::optional<int64_t> length;
  bool json = false;
};

constexpr int64_t most_length = 64;  // the page draws no more processors

// Compiled here, so that what is wrong with it is said here and not first in the page.
PageProgram page_program(const PlaygroundFlags& options) {
  const int64_t length = options.length.value_or(8);
  if (length > most_length) {
    throw Error(ExitCode::usage, fmt::format("--length {} in a playground", length),
                fmt::format("at most {}", most_length));
  }
  const ProgramInput input =
      read_program(options.program, length, parse_settings(options.settings));
  compile(route_messages(input.program, Routing::automatic).program);
  return {.name = input.program.name,
          .text = std::string(input.source.text),
          .parameters = options.settings,
          .length = static_cast<int>(length)};
}

ExitCode playground(const PlaygroundFlags& options) {
  refuse_with_standard_output(options.output, options.json, "--json");
  if (options.program.empty() && (options.length || !options.settings.empty())) {
    throw Error(ExitCode::usage, options.length ? "--length alone" : "--set alone",
                "--program, whose they are");
  }
  const std::filesystem::path base =
      options.page.empty() ? find_playground() : std::filesystem::path(options.page);
  std::vector<std::filesystem::path> files;
  for (const std::string& name : options.models) files.push_back(find_model(name));
  PageContent content{.models = page_models(files), .program = {}};
  if (!options.program.empty()) content.program = page_program(options);
  const std::string page = filled_playground(base, content);
  write_result(options.output, page);
  if (is_standard_output(options.output)) return ExitCode::done;
  Json models = Json::array();
  for (const std::filesystem::path& file : files) models.push_back(file.string());
  const Json program = content.program ? Json(content.program->name) : Json();
  if (options.json) {
    const Json written = {
        {"page", options.output}, {"bytes", page.size()}, {"models", models}, {"program", program}};
    write_output(written.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else {
    write_output(fmt::format("{} ({:.1f} MB): open it in a browser\n", options.output,
                             static_cast<double>(page.size()) / 1e6));
  }
  return ExitCode::done;
}

void add_playground_options(CLI::App& command, PlaygroundFlags& options) {
  option(command, "--model", options.models, "RUN",
         "A run folder or model file to show under Train; twice for both places")
      ->allow_extra_args(false);
  option(command, "--program", options.program, "FILE",
         "A .par file, or a program's name, to show under Algorithms");
  option(command, "--length", options.length, "INT [8]",
         "Numbers per input of the program, n, up to 64");
  add_set_option(command, options.settings);
  option(command, "--page", options.page, "FILE [that of this build or installation]",
         "The page to fill, as scripts/playground_page makes it");
  add_output_option(command, options.output, "The page; '-': standard output",
                    "FILE [playground.html]");
  add_json_flag(command, options.json);
}

const Command registered_playground(
    {.name = "playground",
     .group = Group::algorithms,
     .summary = "Write the playground, one HTML page, with models or a program inside",
     .examples = {"posattn playground -o page.html",
                  "posattn playground --model runs/cumulative-sum/positional-seed0 --model "
                  "runs/cumulative-sum/standard-seed0",
                  "posattn playground --program mine.par --length 16 -o mine.html"},
     .details = "The page trains models and compiles programs in the browser. It needs no other "
                "file and no network (docs/playground.md). Models must be small: numbers, not "
                "tokens, at most 64 nodes."},
    add_playground_options, playground);

}  // namespace
}  // namespace posattn
