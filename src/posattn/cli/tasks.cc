// posattn tasks
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "posattn/cli/commands.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

constexpr int shown_length = 8;  // the paper's length, for the shapes in the listing

std::string tasks_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Task* task : tasks()) {
    const TaskShape shape = task->shape(shown_length);
    list.push_back({{"name", task->name()},
                    {"description", task->description()},
                    {"shortest_length", task->shortest_length()},
                    {"variable_length", task->supports_variable_length()},
                    {"nodes_at_length_8", shape.real_nodes},
                    {"data_columns_at_length_8", shape.data_columns},
                    {"output_columns_at_length_8", shape.output_columns}});
  }
  return list.dump(2) + "\n";
}

std::string tasks_text() {
  TextTable table({"task", "description"}, 2);
  for (const Task* task : tasks()) {
    table.add_row({std::string(task->name()), std::string(task->description())});
  }
  return table.to_string();
}

}  // namespace

void add_tasks(CommandLine& command_line) {
  auto json = std::make_shared<bool>(false);
  CLI::App& command =
      add_command(command_line,
                  {.name = "tasks",
                   .description = "List the tasks a model can be trained on",
                   .examples = {"posattn tasks", "posattn tasks --json",
                                "posattn train --task sort --architecture positional"},
                   .details = "A new task is one file and one line: docs/adding-a-task.md."},
                  [json] {
                    write_output(*json ? tasks_json() : tasks_text());
                    return ExitCode::done;
                  });
  add_json_flag(command, *json);
}

}  // namespace posattn
