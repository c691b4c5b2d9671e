#include "posattn/experiments/experiment_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

#include "posattn/base/error.h"
#include "posattn/base/text.h"

namespace posattn {
namespace {

const char* const expected_views = "[[views]] with a name each";

// Moves the node: a copy would lose the line that it came from.
void move_keys(toml::table& from, toml::table& to) {
  for (auto&& [key, node] : from) {
    node.visit([&, &name = key](auto& found) { to.insert_or_assign(name, std::move(found)); });
  }
}

// Where the axis becomes another one, values of [quick] are none of its values.
void take_axis(const ExperimentReader& reader, toml::table& view, toml::table& file) {
  const toml::table* changed = reader.table(view, "axis");
  if (!changed) return;
  if (changed->contains("key")) {
    if (toml::table* quick = file["quick"].as_table()) quick->erase("values");
    return;
  }
  if (toml::table* axis = file["axis"].as_table()) {
    move_keys(*view["axis"].as_table(), *axis);
    view.erase("axis");
  }
}

}  // namespace

std::string ExperimentReader::where(const toml::node& node) const {
  return fmt::format("in {}:{}", name_, node.source().begin.line);
}

void ExperimentReader::only(const toml::table& table, const std::vector<std::string>& known) const {
  for (const auto& [key, node] : table) {
    if (std::ranges::find(known, key.str()) == known.end()) {
      throw unknown_name(ExitCode::configuration, "key", key.str(), known, where(node));
    }
  }
}

void ExperimentReader::refuse(const toml::node& node, std::string_view key,
                              const std::string& expected) const {
  throw Error(ExitCode::configuration, fmt::format("bad '{}' {}", key, where(node)), expected);
}

const toml::node& ExperimentReader::required(const toml::table& table, const char* key,
                                             const std::string& expected) const {
  const toml::node* node = table.get(key);
  if (node) return *node;
  throw Error(ExitCode::configuration, fmt::format("no '{}' {}", key, where(table)), expected);
}

std::string ExperimentReader::text(const toml::table& table, const char* key,
                                   const std::string& otherwise, bool several_lines) const {
  const toml::node* node = table.get(key);
  if (!node) return otherwise;
  if (!node->is_string()) refuse(*node, key, "text in quotes");
  const std::string& found = node->as_string()->get();
  std::string line = found;
  if (several_lines) std::ranges::replace(line, '\n', ' ');
  if (!is_plain_line(line)) {
    refuse(*node, key, "text without control characters and marks of writing direction");
  }
  return found;
}

std::vector<std::string> ExperimentReader::texts(const toml::node& node, const char* key) const {
  const toml::array* array = node.as_array();
  std::vector<std::string> found;
  if (array) {
    for (const toml::node& element : *array) {
      if (!element.is_string()) refuse(element, key, "a list of texts, as [\"a\", \"b\"]");
      found.push_back(element.as_string()->get());
    }
  }
  if (found.empty()) refuse(node, key, "a list of texts, as [\"a\", \"b\"]");
  return found;
}

std::vector<double> ExperimentReader::numbers(const toml::node& node, const char* key,
                                              const ExperimentAxis& axis) const {
  const toml::array* array = node.as_array();
  std::vector<double> found;
  const bool zero = axis.is_tested() && (axis.test_axis.stated || axis.test_axis.from_zero);
  const std::string expected =
      fmt::format("a list of ascending numbers {}, as [1, 2, 10]", zero ? "from 0 on" : "above 0");
  if (array) {
    for (const toml::node& element : *array) {
      const std::optional<double> number = element.value<double>();
      if (!element.is_number() || !std::isfinite(*number) || *number < 0 ||
          (*number == 0 && !zero) || (!found.empty() && *number <= found.back())) {
        refuse(element, key, expected);
      }
      found.push_back(*number);
    }
  }
  if (found.empty()) refuse(node, key, expected);
  return found;
}

double ExperimentReader::number(const toml::node& node, std::string_view key) const {
  const std::optional<double> value = node.value<double>();
  if (!node.is_number() || !std::isfinite(*value)) refuse(node, key, "a number");
  return *value;
}

const toml::table* ExperimentReader::table(const toml::table& parent, const char* key) const {
  const toml::node* node = parent.get(key);
  if (node && !node->is_table()) refuse(*node, key, "a table: [" + std::string(key) + "]");
  return node ? node->as_table() : nullptr;
}

std::vector<uint64_t> ExperimentReader::seeds(const toml::node& node) const {
  if (!node.is_string()) refuse(node, "seeds", "text such as \"0..9\"");
  try {
    return parse_seeds(node.as_string()->get(), fmt::format("seeds {}", where(node)));
  } catch (const Error& error) {
    throw error.as(ExitCode::configuration);
  }
}

std::vector<std::pair<std::string, std::string>> ExperimentReader::settings(
    const toml::table& table, const ExperimentAxis& axis,
    const std::vector<std::string>& others) const {
  std::vector<std::string> known = others;
  for (const FieldInfo& field : config_fields()) {
    if (field.name != "task" && field.name != "seed" && !axis.decides(field.name))
      known.push_back(field.name);
  }
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& [key, node] : table) {
    if (std::ranges::find(others, key.str()) != others.end()) continue;
    for (const char* decided : {"task", "seed", "seeds"}) {
      if (key.str() == decided) {
        throw Error(ExitCode::configuration,
                    fmt::format("'{}' among the settings {}", key.str(), where(node)),
                    "what the grid does not decide", "tasks and seeds stand at the file's top");
      }
    }
    if (axis.decides(key.str())) {
      throw Error(ExitCode::configuration,
                  fmt::format("'{}' among the settings {}", key.str(), where(node)),
                  "what the grid does not decide", "[axis] has its values");
    }
    if (std::ranges::find(known, key.str()) == known.end()) {
      throw unknown_name(ExitCode::configuration, "key", key.str(), known, where(node));
    }
    // The reader of `train --config` knows every key and its type.
    toml::table one;
    one.insert(key, node);
    RunConfig parsed;
    try {
      std::ostringstream out;
      out << one;
      parsed = read_config_text(out.str(), name_).config;
    } catch (const Error& error) {
      std::string problem = error.problem();
      const size_t place = problem.rfind(" in ");
      if (place != std::string::npos) problem.erase(place);
      throw error.as(ExitCode::configuration, problem + " " + where(node));
    }
    found.emplace_back(key.str(), get_field(parsed, key.str()));
  }
  return found;
}

std::vector<std::string> view_names(const ExperimentReader& reader, const toml::table& file) {
  std::vector<std::string> names;
  const toml::node* node = file.get("views");
  if (!node) return names;
  const toml::array* views = node->as_array();
  if (!views || views->empty()) reader.refuse(*node, "views", expected_views);
  for (const toml::node& element : *views) {
    const toml::table* view = element.as_table();
    if (!view) reader.refuse(element, "views", expected_views);
    reader.only(*view,
                {"name", "title", "paper", "description", "metric", "baselines", "axis", "lines"});
    const toml::node& named = reader.required(*view, "name", "a name, for results and commands");
    names.push_back(reader.text(*view, "name", ""));
    if (names.back().empty() || names.back().find('/') != std::string::npos) {
      reader.refuse(named, "name", "a name that a folder can have");
    }
    if (std::ranges::count(names, names.back()) > 1) {
      reader.refuse(named, "name", "a name of its own");
    }
  }
  return names;
}

toml::table view_table(const ExperimentReader& reader, toml::table file, const std::string& view) {
  for (const char* text : {"title", "paper", "description"}) file.erase(text);
  for (toml::node& element : *file["views"].as_array()) {
    toml::table& found = *element.as_table();
    if (found["name"].value<std::string>() != view) continue;
    found.erase("name");
    take_axis(reader, found, file);
    move_keys(found, file);
    break;
  }
  file.erase("views");
  return file;
}

}  // namespace posattn
