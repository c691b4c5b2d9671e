// posattn programs
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "posattn/cli/commands.h"
#include "posattn/cli/program_input.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {
namespace {

struct ProgramsFlags {
  int64_t length = 8;
  std::string settings, show;
  bool json = false;
};

// Descriptions to the right of the numbers, from the same column on; wrapped on a terminal.
std::string with_descriptions(const std::string& table, const std::vector<std::string>& texts) {
  std::vector<std::string> rows;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) rows.push_back(line);
  size_t width = 0;
  for (const std::string& row : rows) width = std::max(width, row.size());
  const auto indent = static_cast<int>(width) + 2;
  const int columns = is_terminal(stdout) ? std::max(indent + 24, terminal_columns(stdout)) : 1000;
  std::string text;
  for (size_t k = 0; k < rows.size(); ++k) {
    text += fmt::format("{:<{}}{}\n", rows[k], indent, wrapped(texts[k], columns, indent));
  }
  return text;
}

// A setting is for every program that has it; `unused` loses those that this one has.
ProgramInput read_with_settings(const std::string& name, int64_t length, const Settings& settings,
                                Settings& unused) {
  ProgramInput input = read_program(name, length);
  Settings own;
  for (const ProgramParameter& parameter : input.parameters) {
    const auto set = settings.find(parameter.name);
    if (set == settings.end()) continue;
    own.insert(*set);
    unused.erase(parameter.name);
  }
  return own.empty() ? input : read_program(name, length, own);
}

std::string description_of(const ProgramInput& input) {
  std::string text = input.source.description;
  for (const ProgramParameter& parameter : input.parameters) text += "; " + to_text(parameter);
  return text;
}

nlohmann::ordered_json as_json(const ProgramParameter& parameter) {
  nlohmann::ordered_json document = {{"name", parameter.name}, {"value", parameter.value}};
  if (parameter.low) {
    document["low"] = *parameter.low;
    document["high"] = *parameter.high;
  }
  return document;
}

nlohmann::ordered_json as_json(const ProgramInput& input, const NetworkPlan& plan, int64_t length) {
  nlohmann::ordered_json document = {{"name", input.source.name},
                                     {"description", input.source.description},
                                     {"task", plan.program.task},
                                     {"length", length},
                                     {"processors", plan.program.processors},
                                     {"rounds", input.program.rounds.size()},
                                     {"layers", plan.layers.size()},
                                     {"heads", plan.heads},
                                     {"words", plan.width},
                                     {"hidden", plan.hidden},
                                     {"constants", plan.constants}};
  for (const ProgramParameter& parameter : input.parameters) {
    document["parameters"].push_back(as_json(parameter));
  }
  return document;
}

ExitCode list_programs(const ProgramsFlags& options) {
  if (!options.show.empty()) {
    write_output(find_program(options.show).text);
    return ExitCode::done;
  }
  TextTable table({"program", "rounds", "layers", "heads", "words", "hidden"});
  std::vector<std::string> descriptions = {"what it computes"};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const Settings settings = parse_settings(options.settings);
  Settings unused = settings;
  for (const LibraryProgram& entry : library_programs()) {
    const ProgramInput input = read_with_settings(entry.name, options.length, settings, unused);
    const NetworkPlan plan =
        plan_network(route_messages(input.program, Routing::automatic).program);
    table.add_row({entry.name, std::to_string(input.program.rounds.size()),
                   std::to_string(plan.layers.size()), std::to_string(plan.heads),
                   std::to_string(plan.width), std::to_string(plan.hidden)});
    descriptions.push_back(description_of(input));
    list.push_back(as_json(input, plan, options.length));
  }
  if (!unused.empty()) {
    throw Error(ExitCode::usage, fmt::format("--set {}", to_text(unused)),
                "parameters that a program of the list has");
  }
  if (options.json) {
    write_output(list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } else {
    write_output(
        fmt::format("n = {}\n{}\nnext:  posattn programs --show sort\n"
                    "       posattn compile sort --length 8 -o sort.safetensors\n",
                    options.length, with_descriptions(table.to_string(), descriptions)));
  }
  return ExitCode::done;
}

}  // namespace

void add_programs(CommandLine& command_line) {
  auto options = std::make_shared<ProgramsFlags>();
  CLI::App& command = add_command(
      command_line,
      {.name = "programs",
       .description = "List the parallel programs that can be compiled, with their cost",
       .examples = {"posattn programs", "posattn programs --length 32",
                    "posattn programs --show sort > mine.par"}},
      [options] { return list_programs(*options); });
  CLI::Option* length =
      command.add_option("--length", options->length, "Cost for this n")->option_text("INT [8]");
  CLI::Option* set = add_set_option(command, options->settings);
  CLI::Option& json = add_json_flag(command, options->json);
  command.add_option("--show", options->show, "Print the text of one of them")
      ->excludes(length)
      ->excludes(set)
      ->excludes(&json)
      ->option_text("NAME");
}

}  // namespace posattn
