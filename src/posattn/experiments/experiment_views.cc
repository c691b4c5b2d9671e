#include "posattn/experiments/experiment_views.h"

#include <algorithm>
#include <utility>

namespace posattn {
namespace {

const char* const expected_views = "[[views]] with a name each";

// Moves, as a copy of a node forgets the line it came from.
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
