// The commands of the program, one file each: parse, call, print.
//
// A command's file defines add_<name>(CommandLine&), declared here and called in main.cc. It
// describes the command to CLI11 with add_command and keeps the parsed options in a struct shared
// with the action that main runs once the whole command line is known to be right:
//
//   void add_tasks(CommandLine& command_line) {
//     auto json = std::make_shared<bool>(false);
//     CLI::App& command = add_command(
//         command_line, {.name = "tasks", .description = "List the tasks", .examples = {"posattn
//         tasks"}}, [json] { return list_tasks(*json); });
//     add_json_flag(command, *json);
//   }
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "posattn/base/error.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace posattn {

struct CommandLine {
  CLI::App& app;
  std::vector<std::string> arguments;  // the command line, the program's name first
  std::function<ExitCode()> chosen;    // set by parsing; empty when no command was given
};

struct CommandText {
  std::string name;
  std::string description;
  std::vector<std::string> examples;  // lines that can be pasted
  std::string details = {};           // further paragraphs after the examples
};

CLI::App& add_command(CommandLine& command_line, const CommandText& text,
                      std::function<ExitCode()> action);
CLI::Option& add_json_flag(CLI::App& command, bool& json);

void add_bench(CommandLine& command_line);
void add_bound(CommandLine& command_line);
void add_certify(CommandLine& command_line);
void add_compare(CommandLine& command_line);
void add_compile(CommandLine& command_line);
void add_completion(CommandLine& command_line);
void add_doctor(CommandLine& command_line);
void add_evaluate(CommandLine& command_line);
void add_experiments(CommandLine& command_line);
void add_help(CommandLine& command_line);
void add_inspect(CommandLine& command_line);
void add_merge(CommandLine& command_line);
void add_playground(CommandLine& command_line);
void add_predict(CommandLine& command_line);
void add_presets(CommandLine& command_line);
void add_programs(CommandLine& command_line);
void add_report(CommandLine& command_line);
void add_reproduce(CommandLine& command_line);
void add_run(CommandLine& command_line);
void add_scale(CommandLine& command_line);
void add_show(CommandLine& command_line);
void add_simulate_standard(CommandLine& command_line);
void add_submit(CommandLine& command_line);
void add_tasks(CommandLine& command_line);
void add_train(CommandLine& command_line);
void add_verify(CommandLine& command_line);
void add_version(CommandLine& command_line);

}  // namespace posattn
