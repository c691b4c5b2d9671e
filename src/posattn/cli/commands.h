// The commands of the program, one file each: parse, call, print.
//
// A command's file defines add_<name>(Program&), declared here and called in main.cc. It describes
// the command to CLI11 with add_command and keeps the parsed options in a struct shared with the
// action that main runs once the whole command line is known to be right:
//
//   void add_tasks(Program& program) {
//     auto json = std::make_shared<bool>(false);
//     CLI::App& command = add_command(
//         program, {.name = "tasks", .description = "List the tasks", .examples = {"posattn
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
}  // namespace CLI

namespace posattn {

struct Program {
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

CLI::App& add_command(Program& program, const CommandText& text, std::function<ExitCode()> action);
void add_json_flag(CLI::App& command, bool& json);

void add_bench(Program& program);
void add_compare(Program& program);
void add_compile(Program& program);
void add_completion(Program& program);
void add_doctor(Program& program);
void add_evaluate(Program& program);
void add_experiments(Program& program);
void add_inspect(Program& program);
void add_predict(Program& program);
void add_presets(Program& program);
void add_programs(Program& program);
void add_report(Program& program);
void add_reproduce(Program& program);
void add_run(Program& program);
void add_show(Program& program);
void add_tasks(Program& program);
void add_train(Program& program);
void add_verify(Program& program);
void add_version(Program& program);

}  // namespace posattn
