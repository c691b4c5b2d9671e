// Task sets, "regions=4,...", and the tasks that they name.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "posattn/base/error.h"
#include "posattn/base/pool.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

// The value that the text means; nothing where the parameter cannot have it.
std::optional<int> value_from(const TaskParameter& parameter, std::string_view text) {
  if (!parameter.words.empty()) {
    const auto found = std::ranges::find(parameter.words, text);
    if (found == parameter.words.end()) return {};
    return static_cast<int>(found - parameter.words.begin());
  }
  int value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = fault == std::errc() && end == text.data() + text.size();
  if (!whole || value < parameter.least || value > parameter.most) return {};
  return value;
}

Error refused(const Task& task, std::string_view part) {
  std::vector<std::string> known, standard;
  for (const TaskParameter& parameter : task.parameters()) {
    known.push_back(fmt::format("{}: {}", parameter.name, values_of(parameter)));
    standard.push_back(
        fmt::format("{}={}", parameter.name, value_text(parameter, parameter.standard)));
  }
  if (known.empty()) {
    return {ExitCode::configuration,
            fmt::format("task-set '{}' with task {}, which has no parameters", part, task.name()),
            "a task that has some", "`posattn tasks` lists them"};
  }
  return {ExitCode::configuration, fmt::format("task-set '{}' with task {}", part, task.name()),
          fmt::format("parameters of the task, each once ({})", fmt::join(known, "; ")),
          fmt::format("it is {} by itself", fmt::join(standard, ","))};
}

std::vector<int> values_from(const Task& task, std::string_view set) {
  const std::vector<TaskParameter> parameters = task.parameters();
  std::vector<std::optional<int>> given(parameters.size());
  for (size_t at = 0; at <= set.size();) {
    const size_t end = std::min(set.find(',', at), set.size());
    const std::string_view part = set.substr(at, end - at);
    const size_t sign = std::min(part.find('='), part.size());
    const auto parameter =
        std::ranges::find(parameters, part.substr(0, sign), &TaskParameter::name);
    if (parameter == parameters.end() || sign == part.size()) throw refused(task, part);
    std::optional<int>& value = given[static_cast<size_t>(parameter - parameters.begin())];
    if (value) throw refused(task, set);
    value = value_from(*parameter, part.substr(sign + 1));
    if (!value) throw refused(task, part);
    at = end + 1;
  }
  std::vector<int> values;
  for (size_t i = 0; i < parameters.size(); ++i) {
    values.push_back(given[i].value_or(parameters[i].standard));
  }
  return values;
}

}  // namespace

std::string value_text(const TaskParameter& parameter, int value) {
  return parameter.words.empty() ? std::to_string(value)
                                 : parameter.words[static_cast<size_t>(value)];
}

std::string values_of(const TaskParameter& parameter) {
  return parameter.words.empty() ? fmt::format("{} to {}", parameter.least, parameter.most)
                                 : fmt::format("one of {}", fmt::join(parameter.words, ", "));
}

std::unique_ptr<const Task> Task::variant(std::span<const int> /*values*/) const {
  throw Error(ExitCode::failed, fmt::format("task {} has no variants", name()));
}

const Task& variant_of(const Task& task, std::string_view set) {
  if (set.empty()) return task;
  std::vector<int> values = values_from(task, set);
  static Mutex mutex;
  static std::map<std::pair<const Task*, std::vector<int>>, std::unique_ptr<const Task>> made;
  const Lock lock(mutex);
  std::unique_ptr<const Task>& variant = made[{&task, values}];
  if (variant == nullptr) variant = task.variant(values);
  return *variant;
}

}  // namespace posattn
