#include <CLI/CLI.hpp>
#include <utility>

#include "posattn/cli/commands.h"

namespace posattn {

CLI::App& add_command(CommandLine& command_line, const CommandText& text,
                      std::function<ExitCode()> action) {
  CLI::App* command = command_line.app.add_subcommand(text.name, text.description);
  std::string footer = "Examples:";
  for (const std::string& example : text.examples) footer += "\n  " + example;
  if (!text.details.empty()) footer += "\n\n" + text.details;
  command->footer(footer);
  command->callback([&command_line, run = std::move(action)] { command_line.chosen = run; });
  return *command;
}

CLI::Option& add_json_flag(CLI::App& command, bool& json) {
  return *command.add_flag("--json", json, "Print the result as JSON (shapes: docs/commands.md)");
}

}  // namespace posattn
