// posattn playground
#include "posattn/playground/playground.h"

#include <algorithm>

#include "posattn/base/file.h"
#include "posattn/benchmark/steps.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/given_input.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/playground_page.h"
#include "posattn/programs/lowering/compile.h"
#include "posattn/programs/messages/route_messages.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

struct PlaygroundFlags {
  std::vector<std::string> models;
  std::string program, settings, output = "playground.html", page;
  std::optional<int64_t> length;
  bool json = false;
};

constexpr int64_t most_length = 64;  // the page draws no more processors

// Compiles the program here, so that an error appears here and not only in the page.
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

namespace fs = std::filesystem;

constexpr uint64_t most_page_bytes = 16 << 20;
constexpr uint64_t most_model_bytes = 8 << 20;  // the page has a third more of them
constexpr int most_nodes = 64;                  // of a table and of maps that one can read

nlohmann::json last_answer() {
  return nlohmann::json::parse(std::string(play_text(), static_cast<size_t>(play_text_size())));
}

int32_t played(int32_t result) {
  if (result >= 0) return result;
  const nlohmann::json error = last_answer();
  throw Error(static_cast<ExitCode>(error["exit_code"].get<int>()), error["problem"],
              error["expected"], error["hint"]);
}

// A folder's name says more than that of the file in it.
std::string shown_name(const fs::path& file) {
  const fs::path folder = absolute_path(file).parent_path().filename();
  return file.filename() == "model.safetensors" ? folder.string() : file.filename().string();
}

// What the page gets of a model, after the model has answered here as it must there.
nlohmann::json try_out(const PageModel& model, const std::string& path) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(model.bytes.data());
  const int32_t handle =
      played(play_load(bytes, static_cast<int32_t>(model.bytes.size()), path.c_str()));
  nlohmann::json about = last_answer();
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    throw Error(ExitCode::data, fmt::format("'{}' in a playground: {}", path, what), expected);
  };
  const auto task = about["task"].get<std::string>();
  if (about["vocabulary"] > 0) refuse("a model of tokens", "a model of numbers");
  if (std::ranges::find(tasks(), task, &Task::name) == tasks().end()) {
    refuse(fmt::format("task '{}'", task), "a task of `posattn tasks`");
  }
  if (about["real_nodes"] > most_nodes) {
    refuse(fmt::format("{} nodes", about["real_nodes"].get<int>()),
           fmt::format("at most {}", most_nodes));
  }
  const int32_t count = played(play_sample(handle, 1, 0, 0));
  const std::vector<double> row(play_numbers(), play_numbers() + count);
  played(play_answer(handle, row.data(), count));
  played(play_attention(handle, row.data(), count));
  play_free_model(handle);
  return about;
}

}  // namespace

fs::path find_playground() {
  const fs::path folder = this_program().parent_path();
  // build/PRESET/posattn in a source tree; bin/posattn of an installation.
  for (const fs::path& place :
       {folder / "../../docs/playground/index.html", folder / "../share/posattn/playground.html"}) {
    if (path_exists(place)) return place.lexically_normal();
  }
  throw Error(ExitCode::data, fmt::format("no playground page for {}", this_program().string()),
              "docs/playground/index.html of the checkout it was built in, or "
              "share/posattn/playground.html of an installation",
              "name the page with --page");
}

std::vector<PageModel> page_models(const std::vector<fs::path>& files) {
  if (files.size() > 2) {
    throw Error(ExitCode::usage, fmt::format("{} models", files.size()), "one, or two to compare");
  }
  std::vector<PageModel> models;
  nlohmann::json first;
  for (const fs::path& file : files) {
    models.push_back({shown_name(file), read_file(file, most_model_bytes)});
    const nlohmann::json about = try_out(models.back(), file.string());
    if (first.is_null()) first = about;
    if (about["task"] == first["task"] && about["length"] == first["length"]) continue;
    throw Error(
        ExitCode::data,
        fmt::format("'{}' is for {} of length {}, '{}' for {} of length {}", files[0].string(),
                    first["task"].get<std::string>(), first["length"].get<int>(), file.string(),
                    about["task"].get<std::string>(), about["length"].get<int>()),
        "two models of one task and length");
  }
  return models;
}

std::string filled_playground(const fs::path& base, const PageContent& content) {
  return page_with(read_text_file(base, most_page_bytes), base.string(), content);
}

}  // namespace posattn
