// posattn help: the options of a command, and the pages made of them: docs/commands.md and the
// manual pages, which say the same for reading elsewhere than on a terminal.
#include <algorithm>
#include <cctype>

#include "posattn/base/file.h"
#include "posattn/base/version.h"
#include "posattn/cli/commands.h"
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

struct OptionText {
  std::vector<std::string> names;  // with their dashes
  std::string kind, fallback;
};

OptionText option_text(const CLI::Option& option) {
  OptionText text;
  text.kind = option.get_option_text();
  if (const size_t bracket = text.kind.find('['); bracket != std::string::npos) {  // "INT [0]"
    text.fallback = text.kind.substr(bracket + 1, text.kind.rfind(']') - bracket - 1);
    text.kind.erase(text.kind.find_last_not_of(' ', bracket - 1) + 1);
  }
  if (option.get_positional()) {
    text.names.push_back(option.get_name(true));
    text.kind.clear();
  } else {
    for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  }
  return text;
}

// "| `-o`, `--out DIR` | `runs/TASK` | folder of the run folders |"
std::string option_row(const CLI::Option& option) {
  OptionText text = option_text(option);
  if (!text.kind.empty()) text.names.back() += " " + text.kind;
  std::string names;
  for (const std::string& name : text.names) names += (names.empty() ? "" : ", ") + code(name);
  return fmt::format("| {} | {} | {} |\n", names,
                     option.get_required() ? "required" : code(text.fallback),
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

struct CodeText {
  ExitCode code;
  const char* meaning;
};
constexpr CodeText exit_codes[] = {
    {ExitCode::done, "done"},
    {ExitCode::failed,
     "failed: a file cannot be written, standard output is closed, a run diverged, no memory"},
    {ExitCode::usage,
     "usage: an unknown command, flag, task or architecture, or a value that cannot be read"},
    {ExitCode::configuration,
     "configuration: an unknown key, impossible sizes, or a folder that holds another run"},
    {ExitCode::data,
     "data: a file or folder that is missing, damaged or of the wrong shape, or names an unknown "
     "task"},
    {ExitCode::device, "no such device"},
    {ExitCode::verification, "verification failed"},
    {ExitCode::interrupted, "interrupted, after a checkpoint"},
};

// Text for a manual page: nothing in it is a request of roff, and dashes can be copied.
std::string roff(const std::string& text) {
  using Escape = std::pair<char, const char*>;
  constexpr Escape escapes[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                                {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"}};
  std::string escaped;
  for (const char c : text) {
    const bool begins = escaped.empty() || escaped.back() == '\n';
    if (begins && (c == '.' || c == '\'')) escaped += "\\&";
    const auto* escape = std::ranges::find(escapes, c, &Escape::first);
    escaped += escape == std::end(escapes) ? std::string(1, c) : escape->second;
  }
  return escaped;
}

std::string manual_head(const std::string& name, const std::string& summary) {
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return std::toupper(c); });
  return fmt::format(".TH {} 1 \"\" \"posattn {}\" posattn\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
                     roff(title), build_info().version, roff(name), roff(summary));
}

// ".TP", the option, and what it means.
std::string manual_option(const CLI::Option& option) {
  const OptionText text = option_text(option);
  std::string names;
  for (const std::string& name : text.names) {
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  }
  if (!text.kind.empty()) names += fmt::format(" \\fI{}\\fR", roff(text.kind));
  std::string meaning = roff(option.get_description());
  if (option.get_required()) meaning += " (required)";
  if (!text.fallback.empty()) meaning += fmt::format(" (default: {})", roff(text.fallback));
  return fmt::format(".TP\n{}\n{}\n", names, meaning);
}

std::string manual_page(const CommandText& text, const CLI::App& command) {
  std::string page = manual_head("posattn-" + text.name, text.summary);
  page += fmt::format("\\fBposattn {}\\fR [\\fIOPTION\\fR]...", roff(text.name));
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) page += fmt::format(" \\fI{}\\fR", roff(option->get_name(true)));
  }
  page += "\n";
  if (!text.details.empty()) {
    page += ".SH DESCRIPTION\n";
    for (size_t at = 0, end = 0; end != std::string::npos; at = end + 2) {
      end = text.details.find("\n\n", at);
      page += ".PP\n" + roff(text.details.substr(at, end - at)) + "\n";
    }
  }
  page += ".SH OPTIONS\n";
  std::string group;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group() != group && !group.empty()) {
      page += fmt::format(".SS {}\n", roff(option->get_group()));
    }
    if (option != command.get_help_ptr()) group = option->get_group();
    page += manual_option(*option);
  }
  page += ".SH EXAMPLES\n.nf\n";
  for (const std::string& example : text.examples) page += roff(example) + "\n";
  return page + ".fi\n.SH SEE ALSO\n.BR posattn (1),\nwhich has the exit codes\n";
}

std::string manual_overview() {
  std::string page = manual_head("posattn", "train, compile and explain positional Transformers");
  page += "\\fBposattn\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.SH COMMANDS\n";
  const CommandText* previous = nullptr;
  for (const auto& [text, add] : registered_commands()) {
    if (previous == nullptr || previous->group != text.group) {
      page += fmt::format(".SS {}\n", roff(std::string(to_string(text.group))));
    }
    previous = &text;
    page += fmt::format(".TP\n.BR posattn\\-{} (1)\n{}\n", roff(text.name), roff(text.summary));
  }
  page += ".SH EXIT STATUS\n";
  for (const CodeText& row : exit_codes) {
    page += fmt::format(".TP\n{}\n{}\n", static_cast<int>(row.code), roff(row.meaning));
  }
  return page;
}

// docs/commands.md.
std::string markdown_page(const CLI::App& app) {
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
  sections += "## Exit codes\n\n| code | meaning |\n|---|---|\n";
  for (const CodeText& row : exit_codes) {
    sections += fmt::format("| {} | {} |\n", static_cast<int>(row.code), row.meaning);
  }
  return first_lines + index + "\n" + sections;
}

// posattn.1, and posattn-train.1 for each command.
void write_manual_pages(const CLI::App& app, const std::filesystem::path& folder) {
  create_folder(folder);
  write_file(folder / "posattn.1", manual_overview());
  for (const auto& [text, add] : registered_commands()) {
    write_file(folder / ("posattn-" + text.name + ".1"),
               manual_page(text, *app.get_subcommand(text.name)));
  }
}

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
