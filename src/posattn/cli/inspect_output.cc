#include "posattn/cli/inspect_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "posattn/base/text.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"

namespace posattn {
namespace {

constexpr int widest_text_map = 32;  // nodes; larger maps need the SVG

struct TensorStatistics {
  double smallest = 0, largest = 0, norm = 0;
};

TensorStatistics statistics(std::span<const float> values) {
  TensorStatistics result;
  if (values.empty()) return result;
  result.smallest = *std::min_element(values.begin(), values.end());
  result.largest = *std::max_element(values.begin(), values.end());
  double squares = 0;
  for (const float value : values) squares += double{value} * value;
  result.norm = std::sqrt(squares);
  return result;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

// A value of several lines, such as a program, is indented, so that none of its lines can pass for
// another part of the output.
std::string note_text(const std::string& name, const std::string& value) {
  const std::string shown = printable(value, true);
  if (shown.find('\n') == std::string::npos) {
    return fmt::format("{}: {}\n", printable(name), shown);
  }
  std::string text = printable(name) + ":\n";
  std::istringstream lines(shown);
  for (std::string line; std::getline(lines, line);)
    text += (line.empty() ? "" : "  ") + line + "\n";
  return text;
}

std::string heading(const Inspection& inspection) {
  const Model& model = *inspection.model;
  std::string text = printable(inspection.path) + "\n";
  if (model.origin.task.empty()) {
    text += is_compiled(model) ? "compiled from a program of no task\n"
                               : "task unknown (the file has no metadata of posattn)\n";
  } else {
    text += fmt::format(
        "{} {}, {} {}{}\n", is_compiled(model) ? "compiled for" : "trained on",
        printable(model.origin.task), model.origin.variable_length ? "lengths up to" : "length",
        model.origin.length,
        model.spec.vocabulary > 0
            ? ""
            : fmt::format(", {} values in [-{}, {}]", model.origin.integers ? "integer" : "real",
                          model.origin.range, model.origin.range));
  }
  for (const auto& [name, value] : model.origin.notes) text += note_text(name, value);
  text += fmt::format("\n{} architecture\n", preset_name(model.spec));
  const Json spec = Json::parse(to_json(model.spec));
  for (const auto& [name, value] : spec.items()) {
    text += fmt::format("  {:<20}{}\n", name,
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

std::string parameter_table(const Model& model) {
  TextTable table({"tensor", "shape", "numbers", "min", "max", "norm"}, 2);
  for (const TensorInfo& tensor : model.parameters.layout().tensors()) {
    const TensorStatistics found = statistics(model.parameters.slice(tensor));
    table.add_row({tensor.name, shape_text(tensor.shape), std::to_string(tensor.size),
                   short_number(found.smallest), short_number(found.largest),
                   short_number(found.norm)});
  }
  return fmt::format("{}trained numbers: {}\n", table.to_string(),
                     model.parameters.layout().parameter_count());
}

// The shade for a share of the largest weight.
const char* shade(float share) {
  constexpr const char* shades[] = {"··", "░░", "▒▒", "▓▓", "██"};
  constexpr const char* negative[] = {"··", "-░", "-▒", "-▓", "-█"};
  return (share < 0 ? negative : shades)[std::clamp(static_cast<int>(std::abs(share) * 5), 0, 4)];
}

// The number and name next to a row; nothing where nodes have none.
std::string row_label(const AttentionMaps& maps, int node, int widest) {
  if (maps.names.empty()) return "";
  const std::string name = maps.full_name(node);
  return "  " + name + std::string(widest - display_width(name), ' ');
}

// Above the columns of all heads, where names are as narrow as a cell.
std::string column_names(const AttentionMaps& maps, int widest_label) {
  std::string names;
  for (int node = 0; node < maps.nodes; ++node) {
    const std::string name = maps.name(node);
    if (maps.names.empty() || display_width(name) > 2) return "";
    names += name + std::string(2 - display_width(name), ' ');
  }
  std::string text = "  " + std::string(widest_label + 2, ' ');
  for (int head = 0; head < maps.heads; ++head) text += "  " + names;
  return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
}

// The heads of a layer side by side; a row shows what one node attends to.
std::string heat_maps(const AttentionMaps& maps) {
  std::string text = fmt::format("attention ({})\n", maps.caption);
  if (maps.nodes > widest_text_map) {
    return text + fmt::format(
                      "  {} nodes are too many to show here: use --attention FILE.svg, --part "
                      "0..{} or --node 0\n",
                      maps.nodes, widest_text_map - 1);
  }
  // A softmax is never zero everywhere, so the largest weight is positive; of a part it may be 0.
  float largest = 1e-30f;
  bool negative = false;
  for (const float weight : maps.weights) {
    largest = std::max(largest, std::abs(weight));
    negative = negative || weight < 0;
  }
  text += fmt::format(
      "  a row is a node; shade by share of the largest weight, {}:\n"
      "  ·· < 0.2 ≤ ░░ < 0.4 ≤ ▒▒ < 0.6 ≤ ▓▓ < 0.8 ≤ ██\n",
      short_number(largest));
  if (negative) text += "  - before a shade: below 0\n";
  int widest = 0;
  for (int node = 0; node < maps.nodes; ++node) {
    widest = std::max(widest, display_width(maps.full_name(node)));
  }
  const std::string above = column_names(maps, widest);
  const int64_t map_size = int64_t{1} * maps.nodes * maps.nodes;
  for (int layer = 0; layer < maps.depth; ++layer) {
    text += fmt::format("  layer {}, heads 0 to {}\n{}", layer, maps.heads - 1, above);
    for (int node = 0; node < maps.nodes; ++node) {
      text += "  " + row_label(maps, node, widest);
      for (int head = 0; head < maps.heads; ++head) {
        const float* row = maps.weights.data() +
                           (int64_t{1} * layer * maps.heads + head) * map_size +
                           int64_t{1} * node * maps.nodes;
        text += "  ";
        for (int other = 0; other < maps.nodes; ++other) text += shade(row[other] / largest);
      }
      text += "\n";
    }
  }
  return text;
}

// The places that a node attends to most, strongest first, for every layer and head.
std::string strongest_places(const AttentionMaps& maps, int node) {
  const int shown = std::min(5, maps.nodes);
  TextTable table({"layer", "head", "looks at"}, 3);
  std::vector<int> places(maps.nodes);
  for (int map = 0; map < maps.depth * maps.heads; ++map) {
    const float* row =
        maps.weights.data() + (int64_t{1} * map * maps.nodes + node) * int64_t{1} * maps.nodes;
    std::iota(places.begin(), places.end(), 0);
    std::ranges::partial_sort(places, places.begin() + shown, [row](int left, int right) {
      return std::abs(row[left]) > std::abs(row[right]);
    });
    std::string text;
    for (int i = 0; i < shown; ++i) {
      text += fmt::format("{}{} ({:.3f})", i > 0 ? ", " : "", maps.full_name(places[i]),
                          row[places[i]]);
    }
    table.add_row({std::to_string(map / maps.heads), std::to_string(map % maps.heads), text});
  }
  return fmt::format("attention of node {} ({})\n{}", maps.full_name(node), maps.caption,
                     table.to_string());
}

Json attention_json(const AttentionMaps& maps) {
  const float* value = maps.weights.data();
  Json layers = Json::array();
  for (int layer = 0; layer < maps.depth; ++layer) {
    Json heads = Json::array();
    for (int head = 0; head < maps.heads; ++head) {
      Json rows = Json::array();
      for (int node = 0; node < maps.nodes; ++node, value += maps.nodes) {
        rows.push_back(std::vector<float>(value, value + maps.nodes));
      }
      heads.push_back(rows);
    }
    layers.push_back(heads);
  }
  Json object = {{"caption", maps.caption}};
  if (!maps.names.empty()) object["names"] = maps.names;
  if (maps.first_node > 0) object["first_node"] = maps.first_node;
  object["layers"] = layers;
  return object;
}

}  // namespace

std::string inspection_text(const Inspection& inspection) {
  const ModelSpec& spec = inspection.model->spec;
  std::string attention = "attention depends on the input: --input 1,2,... shows it for that row\n";
  if (inspection.attention) {
    const AttentionMaps& maps = *inspection.attention;
    attention = inspection.node ? strongest_places(maps, *inspection.node) : heat_maps(maps);
  } else if (!shows_attention(spec)) {
    attention =
        fmt::format("attention reads fixed places (attn.routes); {} nodes are too many to show\n",
                    spec.nodes());
  }
  return heading(inspection) + "\n" + parameter_table(*inspection.model) + "\n" + attention;
}

std::string inspection_json(const Inspection& inspection) {
  const Model& model = *inspection.model;
  Json tensors = Json::array();
  for (const TensorInfo& tensor : model.parameters.layout().tensors()) {
    const TensorStatistics found = statistics(model.parameters.slice(tensor));
    tensors.push_back({{"name", tensor.name},
                       {"shape", tensor.shape},
                       {"trained", tensor.trained},
                       {"min", found.smallest},
                       {"max", found.largest},
                       {"norm", found.norm}});
  }
  const Json document = {
      {"path", inspection.path},
      {"task", model.origin.task.empty() ? Json(nullptr) : Json(model.origin.task)},
      {"architecture", preset_name(model.spec)},
      {"length", model.origin.length},
      {"variable_length", model.origin.variable_length},
      {"range", model.origin.range},
      {"integers", model.origin.integers},
      {"notes", model.origin.notes},
      {"spec", Json::parse(to_json(model.spec))},
      {"parameter_count", model.parameters.layout().parameter_count()},
      {"tensors", tensors},
      {"attention", inspection.attention ? attention_json(*inspection.attention) : Json(nullptr)}};
  return json_text(document);
}

}  // namespace posattn
