// The program: describes the commands, parses, runs the chosen one, and turns whatever goes wrong
// into one message and the documented exit code.

#include <algorithm>
#include <exception>
#include <new>
#include <tuple>

#include "posattn/base/version.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/usage_errors.h"

namespace posattn {
namespace {

std::vector<RegisteredCommand>& all_commands() {
  static std::vector<RegisteredCommand> commands;
  return commands;
}

constexpr const char* welcome =
    R"(posattn {} trains, evaluates and analyses positional and standard Transformers.

Try:
  posattn train --task cumulative-sum --architecture positional,standard --epochs 200
  posattn evaluate runs/cumulative-sum --scales 1..10
  posattn report runs/cumulative-sum

'posattn help' lists all commands; 'posattn help COMMAND' shows examples of each.
)";

void add_commands(CLI::App& app, const CommandLine& line, std::function<ExitCode()>& chosen) {
  for (const RegisteredCommand& command : registered_commands()) {
    const CommandText& text = command.text;
    CLI::App& added = *app.add_subcommand(text.name, text.summary);
    added.group(std::string(to_string(text.group)));
    std::string footer = "Examples:";
    for (const std::string& example : text.examples) footer += "\n  " + example;
    if (!text.details.empty()) footer += "\n\n" + wrapped_paragraphs(text.details, 90);
    added.footer(footer);
    added.callback([&chosen, run = command.add(added, line)] { chosen = run; });
  }
}

// Flags that had another name before: it stays accepted, but no help or error speaks of it.
struct RenamedFlag {
  const char* command;
  const char* before;
  const char* now;
};
constexpr RenamedFlag renamed_flags[] = {{"bench", "--seeds", "--runs"}};

std::vector<std::string> with_new_names(std::vector<std::string> arguments) {
  for (const RenamedFlag& flag : renamed_flags) {
    if (arguments.size() < 2 || arguments[1] != flag.command) continue;
    for (std::string& argument : arguments) {
      const std::string name = argument.substr(0, argument.find('='));
      if (name == flag.before) argument.replace(0, name.size(), flag.now);
    }
  }
  return arguments;
}

// Names what takes memory among the options of the command.
std::string memory_hint(const CLI::App& app) {
  std::vector<std::string> flags;
  for (const CLI::App* command : app.get_subcommands()) {
    for (const char* flag : {"--batch", "--samples", "--width", "--length"}) {
      const CLI::Option* option = command->get_option_no_throw(flag);
      if (option != nullptr && option->get_group() != hint_group) flags.emplace_back(flag);
    }
  }
  return flags.empty() ? "" : fmt::format("try a smaller {}", fmt::join(flags, " or "));
}

ExitCode run(int argc, char** argv) {
  const std::string version = build_info().version;
  CLI::App app("Positional Transformers: train, evaluate, analyse", "posattn");
  app.set_version_flag("--version", "posattn " + version, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("OPTIONS", "options");
  app.footer("'posattn help COMMAND' shows the options of a command and examples to paste.");
  const CommandLine command_line{app, std::vector<std::string>(argv, argv + argc)};
  std::function<ExitCode()> chosen;  // set by parsing
  add_commands(app, command_line, chosen);
  try {
    std::vector<std::string> words = with_new_names(command_line.arguments);
    refuse_missing_values(app, words);
    std::reverse(words.begin(), words.end());  // as CLI11 takes them, without the program's name
    words.pop_back();
    app.parse(words);
  } catch (const CLI::CallForVersion& call) {
    write_output(std::string(call.what()) + "\n");
    return ExitCode::done;
  } catch (const CLI::CallForHelp&) {
    write_output(app.help());
    return ExitCode::done;
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error);
  }
  try {
    if (chosen) return chosen();
  } catch (const std::bad_alloc&) {
    throw Error(ExitCode::failed, "not enough memory", "", memory_hint(app));
  }
  write_output(fmt::format(fmt::runtime(welcome), version));
  return ExitCode::done;
}

ExitCode run_and_report(int argc, char** argv) {
  try {
    const ExitCode code = run(argc, argv);
    flush_output();
    return code;
  } catch (const Error& error) {
    print_error(error);
    return error.code();
  } catch (const ReaderGone&) {
    return ExitCode::failed;
  } catch (const std::exception& error) {
    print_error(Error(ExitCode::failed, error.what()));
  }
  return ExitCode::failed;
}

}  // namespace

std::string_view to_string(Group group) {
  constexpr std::string_view names[] = {"Train and use models", "The paper's experiments",
                                        "Parallel algorithms", "Theory", "This machine"};
  return names[static_cast<int>(group)];
}

void Command::enter(RegisteredCommand command) { all_commands().push_back(std::move(command)); }

const std::vector<RegisteredCommand>& registered_commands() {
  static const std::vector<RegisteredCommand> sorted = [] {
    std::vector<RegisteredCommand> commands = all_commands();
    std::ranges::sort(commands, {}, [](const RegisteredCommand& command) {
      return std::tie(command.text.group, command.text.name);
    });
    return commands;
  }();
  return sorted;
}

CLI::Option& add_json_flag(CLI::App& command, bool& json) {
  return *command.add_flag("--json", json, "Print the result as JSON (shapes: docs/files.md)");
}

CLI::Option& add_threads_option(CLI::App& command, int& threads) {
  return *command.add_option("--threads", threads, "Threads to use; 0: one per core")
              ->option_text("INT [0]");
}

}  // namespace posattn

int main(int argc, char** argv) {
  posattn::secure_standard_streams();
  return static_cast<int>(posattn::run_and_report(argc, argv));
}
