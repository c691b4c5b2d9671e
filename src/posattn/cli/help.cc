// posattn help: the options of a command, and docs/commands.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "posattn/cli/commands.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"
#include "posattn/cli/usage_errors.h"

namespace posattn {
namespace {

// Text for a cell of a table.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

std::string code(const std::string& text) { return text.empty() ? "" : "`" + cell(text) + "`"; }

// "| `-o`, `--out DIR` | `runs/TASK` | folder of the run folders |"
std::string option_row(const CLI::Option& option) {
  std::string kind = option.get_option_text(), fallback;
  if (kind.empty() && option.get_items_expected_max() > 0) {  // what CLI11 shows itself
    kind = option.get_type_name();
    fallback = option.get_default_str();
  }
  if (const size_t bracket = kind.find('['); bracket != std::string::npos) {  // "INT [0]"
    fallback = kind.substr(bracket + 1, kind.rfind(']') - bracket - 1);
    kind.erase(kind.find_last_not_of(' ', bracket - 1) + 1);
  }
  std::string names;
  for (const std::string& name : option.get_snames()) names += "`-" + name + "`, ";
  for (const std::string& name : option.get_lnames()) names += "`--" + name + "`, ";
  if (option.get_positional()) {
    names = code(option.get_name(true));
  } else {
    names.erase(names.size() - 2);
    if (!kind.empty()) names.insert(names.size() - 1, " " + cell(kind));
  }
  return fmt::format("| {} | {} | {} |\n", names,
                     option.get_required() ? "required" : code(fallback),
                     cell(option.get_description()));
}

std::string section_of(const CommandText& text, const CLI::App& command) {
  std::string page = fmt::format("## {}\n\n{}.\n", text.name, text.summary);
  if (!text.details.empty()) page += "\n" + wrapped_paragraphs(text.details, 120) + "\n";
  page += "\n```sh\n";
  for (const std::string& example : text.examples) page += example + "\n";
  page += "```\n";
  std::string group;
  for (const CLI::Option* option : command.get_options()) {
    if (option == command.get_help_ptr()) continue;
    if (option->get_group() != group) {
      if (!group.empty()) page += fmt::format("\n**{}**\n", option->get_group());
      page += "\n| option | default | meaning |\n|---|---|---|\n";
      group = option->get_group();
    }
    page += option_row(*option);
  }
  return page + "\n";
}

constexpr const char* first_lines =
    R"(<!-- Written by `posattn help --markdown`; do not edit. -->
# Commands

`posattn help COMMAND` shows the same on a terminal. [files.md](files.md) has the forms of input and output, JSON
and the files of runs. Results go to standard output, progress and errors to standard error.

)";

constexpr const char* exit_codes = R"(## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | failed: a file cannot be written, standard output is closed, a run diverged, no memory |
| 2 | usage: an unknown command, flag, task or architecture, or a value that cannot be read |
| 3 | configuration: an unknown key, impossible sizes, or a folder that holds another run |
| 4 | data: a file or folder that is missing, damaged or of the wrong shape, or names an unknown task |
| 5 | no such device |
| 6 | verification failed |
| 130 | interrupted, after a checkpoint |
)";

std::string markdown(const CLI::App& app) {
  std::string index, sections;
  const CommandText* previous = nullptr;
  for (const RegisteredCommand& command : registered_commands()) {
    const CommandText& text = command.text;
    if (previous == nullptr || previous->group != text.group) {
      index += fmt::format("{}**{}**\n\n| command | what it does |\n|---|---|\n",
                           previous == nullptr ? "" : "\n", to_string(text.group));
    }
    previous = &text;
    index += fmt::format("| [`{0}`](#{0}) | {1} |\n", text.name, cell(text.summary));
    sections += section_of(text, *app.get_subcommand(text.name));
  }
  return first_lines + index + "\n" + sections + exit_codes;
}

struct HelpFlags {
  std::string command;
  bool markdown = false;
};

ExitCode help(const HelpFlags& flags, const CommandLine& line) {
  const CLI::App& app = line.app;
  if (flags.markdown) {
    write_output(markdown(app));
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
  argument(command, "COMMAND", flags.command, "A command; none: the list of all");
  command.add_flag("--markdown", flags.markdown, "Print docs/commands.md");
}

const Command registered_help({.name = "help",
                               .group = Group::machine,
                               .summary = "Show the options of a command and examples to paste",
                               .examples = {"posattn help", "posattn help train"}},
                              add_help_options, help);

}  // namespace
}  // namespace posattn
