// posattn help
#include <CLI/CLI.hpp>
#include <memory>

#include "posattn/cli/commands.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/usage_errors.h"

namespace posattn {
namespace {

ExitCode help(const std::string& name, const CLI::App& app) {
  if (name.empty()) {
    // app.help() would show that of `help`, the command that was given.
    write_output(app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal));
    return ExitCode::done;
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() != name) continue;
    write_output(command->help(app.get_name()));
    return ExitCode::done;
  }
  throw unknown_name(ExitCode::usage, "command", name, command_names(app));
}

}  // namespace

void add_help(CommandLine& command_line) {
  auto name = std::make_shared<std::string>();
  CLI::App& command =
      add_command(command_line,
                  {.name = "help",
                   .description = "Show the options of a command and examples to paste",
                   .examples = {"posattn help", "posattn help train"}},
                  [name, &app = command_line.app] { return help(*name, app); });
  command.add_option("COMMAND", *name, "A command; none: the list of all")->type_name("");
}

}  // namespace posattn
