// The commands of the program. A command is one file: what it is called and says of itself, its
// options, and what it does. It registers itself, and help, completion and docs/commands.md follow:
//
//   struct SortFlags {
//     bool json = false;
//   };
//   void add_sort_options(CLI::App& command, SortFlags& flags) {
//     add_json_flag(command, flags.json);
//   }
//   ExitCode sort(const SortFlags& flags) { ... }
//   const Command registered_sort({.name = "sort", .group = Group::algorithms, .summary = "...",
//                                  .examples = {"posattn sort"}}, add_sort_options, sort);
//
// What every command uses comes with this header: options, errors, formatted text, tables, JSON.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "posattn/base/error.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"

namespace posattn {

// The order of help; within a group commands stand by name.
enum class Group { train, paper, algorithms, theory, machine };
std::string_view to_string(Group group);

struct CommandText {
  std::string name;
  Group group;
  std::string summary;                // one line
  std::vector<std::string> examples;  // lines that can be pasted
  std::string details = {};           // paragraphs, which help wraps
};

struct CommandLine {
  const CLI::App& app;
  std::vector<std::string> arguments;  // the program's name first
};

struct RegisteredCommand {
  CommandText text;
  // Adds the options and returns what the command does with them.
  std::function<std::function<ExitCode()>(CLI::App&, const CommandLine&)> add;
};
// In the order of help.
const std::vector<RegisteredCommand>& registered_commands();

class Command {
 public:
  // `run` takes the flags and, if it likes, the command line.
  template <class Flags, class Run>
  Command(CommandText text, void (*add)(CLI::App&, Flags&), Run run) {
    enter({std::move(text), [add, run](CLI::App& command, const CommandLine& line) {
             auto flags = std::make_shared<Flags>();
             add(command, *flags);
             return [run, flags, &line] {
               static_cast<void>(line);  // which not every command takes
               if constexpr (std::is_invocable_v<Run, const Flags&>) {
                 return run(*flags);
               } else {
                 return run(*flags, line);
               }
             };
           }});
  }

 private:
  static void enter(RegisteredCommand command);
};

// An argument without a flag.
template <class Value>
CLI::Option* argument(CLI::App& command, const char* name, Value& value, const std::string& help) {
  return command.add_option(name, value, help)->type_name("");
}

// A flag with a value; `kind` is what help shows behind it: "INT [1000]", with the default.
template <class Value>
CLI::Option* option(CLI::App& command, const std::string& flag, Value& value,
                    const std::string& kind, const std::string& help) {
  return command.add_option(flag, value, help)->option_text(kind);
}

CLI::Option& add_json_flag(CLI::App& command, bool& json);

// The flags of a command whose only option is --json.
struct JsonFlag {
  bool json = false;
};
inline void add_json_flag_alone(CLI::App& command, JsonFlag& flags) {
  add_json_flag(command, flags.json);
}

// --threads of commands that compute.
CLI::Option& add_threads_option(CLI::App& command, int& threads);

}  // namespace posattn
