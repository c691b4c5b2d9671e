// posattn tasks

#include "posattn/cli/commands.h"
#include "posattn/report/page/page_parts.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

constexpr int shown_length = 8;  // the paper's length, for the shapes in the listing

bool has_usual_axes(const Task& task) {
  const std::vector<TestAxis> axes = task.test_axes();
  return axes.size() == 1 && axes[0].name == "c";
}

std::string tasks_json() {
  Json list = Json::array();
  for (const Task* task : tasks()) {
    const TaskShape shape = task->shape(shown_length);
    Json axes = Json::array();
    for (const TestAxis& axis : task->test_axes()) {
      axes.push_back({{"name", axis.name}, {"description", axis.description}});
    }
    Json settings = Json::object();
    for (const auto& [key, value] : task->settings()) settings[key] = value;
    Json parameters = Json::array();
    for (const TaskParameter& parameter : task->parameters()) {
      parameters.push_back({{"name", parameter.name},
                            {"description", parameter.description},
                            {"default", value_text(parameter, parameter.standard)},
                            {"accepts", values_of(parameter)}});
    }
    list.push_back({{"name", task->name()},
                    {"description", task->description()},
                    {"shortest_length", task->shortest_length()},
                    {"variable_length", task->supports_variable_length()},
                    {"nodes_at_length_8", shape.real_nodes},
                    {"data_columns_at_length_8", shape.data_columns},
                    {"output_columns_at_length_8", shape.output_columns},
                    {"vocabulary", shape.vocabulary},
                    {"tokens_and_values", shape.tokens_and_values},
                    {"read_nodes_at_length_8", shape.nodes_read()},
                    {"pair_columns", shape.pair_columns},
                    {"pair_classes", shape.pair_classes},
                    {"answers", task->loss() == Loss::cross_entropy ? "classes" : "numbers"},
                    {"text", task->text() == nullptr ? Json(nullptr) : Json(task->text()->form())},
                    {"parameters", parameters},
                    {"test_axes", axes},
                    {"settings", settings}});
  }
  return json_text(list);
}

std::string count_text(int nodes, int columns, const char* noun) {
  return columns == 1 ? plural(nodes, noun) : fmt::format("{} x {} {}s", nodes, columns, noun);
}

std::string input_text(const TaskShape& shape) {
  if (shape.has_pairs()) {
    TaskShape nodes = shape;
    nodes.pair_columns = nodes.pair_classes = 0;
    return fmt::format("{}, {} x {} pairs", input_text(nodes), shape.real_nodes, shape.real_nodes);
  }
  if (shape.vocabulary == 0) return count_text(shape.real_nodes, shape.data_columns, "number");
  return fmt::format("{} tokens of {}{}", shape.real_nodes, shape.vocabulary,
                     shape.tokens_and_values  ? " and numbers"
                     : shape.data_columns > 0 ? " or numbers"
                                              : "");
}

std::string output_text(const Task& task, const TaskShape& shape) {
  if (task.loss() == Loss::squared_error) {
    return count_text(shape.nodes_read(), shape.output_columns, "number");
  }
  return fmt::format("{} class{} of {}", shape.nodes_read(), shape.nodes_read() == 1 ? "" : "es",
                     shape.output_columns);
}

// What a task has apart from numbers and the value range.
std::string further_text(const Task& task) {
  std::string text;
  if (task.text() != nullptr) text += fmt::format("  as text: {}\n", task.text()->form());
  for (const TaskParameter& parameter : task.parameters()) {
    text += fmt::format("  --task-set {}={}: {}, {}\n", parameter.name,
                        value_text(parameter, parameter.standard), parameter.description,
                        values_of(parameter));
  }
  if (!has_usual_axes(task)) {
    for (const TestAxis& axis : task.test_axes()) {
      text += fmt::format("  --axis {}: {}\n", axis.name, axis.description);
    }
  }
  return text.empty() ? "" : fmt::format("\n{}\n{}", task.name(), text);
}

std::string tasks_text() {
  TextTable table({"task", fmt::format("in (n = {})", shown_length), "out", "description"}, 4);
  std::string further;
  for (const Task* task : tasks()) {
    const TaskShape shape = task->shape(shown_length);
    table.add_row({std::string(task->name()), input_text(shape), output_text(*task, shape),
                   std::string(task->description())});
    further += further_text(*task);
  }
  return table.to_string() + further;
}

ExitCode list_tasks(const JsonFlag& flags) {
  write_output(flags.json ? tasks_json() : tasks_text());
  return ExitCode::done;
}

const Command registered_tasks(
    {.name = "tasks",
     .group = Group::train,
     .summary = "List the tasks that models can be trained on",
     .examples = {"posattn tasks", "posattn tasks --json",
                  "posattn train --task sort --architecture positional"},
     .details = "The sizes are those at length 8, and of the parameters (--task-set) the values "
                "that train takes by itself. "
                " docs/adding-a-task.md shows how to add a task."},
    add_json_flag_alone, list_tasks);

}  // namespace
}  // namespace posattn
