// posattn help: the options of a command, and the pages made of them.
#include <CLI/CLI.hpp>
#include <algorithm>

#include "posattn/cli/commands.h"
#include "posattn/cli/help_pages.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/usage_errors.h"

namespace posattn {
namespace {

struct HelpFlags {
  std::string command, manual;
  bool markdown = false;
};

ExitCode help(const HelpFlags& flags, const CommandLine& line) {
  const CLI::App& app = line.app;
  if (flags.markdown) {
    write_output(markdown_page(app));
    return ExitCode::done;
  }
  if (!flags.manual.empty()) {
    write_manual_pages(app, flags.manual);
    return ExitCode::done;
  }
  if (flags.command.empty()) {
    // app.help() would show that of `help`, the command that was given.
    write_output(app.get_formatter()->make_help(&app, app.get_name(), CLI::AppFormatMode::Normal));
    return ExitCode::done;
  }
  const std::vector<std::string> names = command_names(app);
  if (std::ranges::find(names, flags.command) == names.end()) {
    throw unknown_name(ExitCode::usage, "command", flags.command, names);
  }
  write_output(app.get_subcommand(flags.command)->help(app.get_name()));
  return ExitCode::done;
}

void add_help_options(CLI::App& command, HelpFlags& flags) {
  CLI::Option* name =
      argument(command, "COMMAND", flags.command, "A command; none: the list of all");
  CLI::Option* markdown =
      command.add_flag("--markdown", flags.markdown, "Print docs/commands.md")->excludes(name);
  option(command, "--manual", flags.manual, "DIR", "Write a manual page of each command")
      ->excludes(name)
      ->excludes(markdown);
}

const Command registered_help({.name = "help",
                               .group = Group::machine,
                               .summary = "Show the options of a command and examples to paste",
                               .examples = {"posattn help", "posattn help train"}},
                              add_help_options, help);

}  // namespace
}  // namespace posattn
