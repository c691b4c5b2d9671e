// posattn inspect

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "posattn/base/text.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/given_input.h"
#include "posattn/cli/model_paths.h"
#include "posattn/evaluation/predict.h"
#include "posattn/evaluation/samples_io.h"
#include "posattn/model/file/model_file.h"
#include "posattn/model/network.h"
#include "posattn/report/svg/attention_svg.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

// A routed model may have more nodes than any map could show.
constexpr int most_routed_nodes = 256;

inline bool shows_attention(const ModelSpec& spec) {
  return !spec.routed() || spec.nodes() <= most_routed_nodes;
}

struct Inspection {
  std::string path;
  const Model* model = nullptr;
  std::optional<AttentionMaps> attention;  // absent when there is no input or place for it
  std::optional<int> node;                 // show where this one looks, in place of the maps
};

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
        printable(model.origin.task) +
            (model.origin.task_set.empty() ? "" : " with " + printable(model.origin.task_set)),
        model.origin.variable_length ? "lengths up to" : "length", model.origin.length,
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
  static constexpr const char* shades[2][5] = {{"··", "░░", "▒▒", "▓▓", "██"},
                                               {"··", "-░", "-▒", "-▓", "-█"}};
  const int step = std::clamp(static_cast<int>(std::abs(share) * 5), 0, 4);
  return shades[share < 0 ? 1 : 0][step];
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

struct InspectFlags {
  std::string model, attention, input, pairs, part;
  std::optional<int> node;
  bool json = false;
  ModelHints hints;
};

struct InputRow {
  std::vector<float> values;
  std::vector<int32_t> tokens;
  int real_nodes = 0;  // 0: there is no row
  std::string note;
  bool named = false;  // the nodes are those of an input that somebody chose or that counts
  std::vector<float> pairs = {};
  std::vector<int32_t> pair_classes = {};

  Batch batch() const {
    return {.inputs = values,
            .samples = 1,
            .real_nodes = real_nodes,
            .tokens = tokens,
            .pairs = pairs,
            .pair_classes = pair_classes};
  }
};

// The input to show the attention for; empty when there is none.
InputRow attention_input(const Model& model, const std::string& path, const std::string& input,
                         const std::string& pairs) {
  const RowPattern pattern = row_pattern(model.spec);
  const int64_t nodes = model.spec.real_nodes;
  const bool depends_on_input = model.spec.attends_by_data();
  const std::string any_input = model.origin.variable_length
                                    ? "the same for every input of this length"
                                    : "the same for every input";
  if (!input.empty()) {
    ReadSamples samples = given_samples(input, pairs, model, path);
    const int64_t real_nodes = batch_of(samples, model).real_nodes;
    samples.table.values.resize(real_nodes * pattern.real);  // the first row
    samples.table.whole.resize(real_nodes * pattern.whole);
    Table& of_pairs = samples.pairs ? *samples.pairs : samples.pairs.emplace();
    of_pairs.values.resize(real_nodes * real_nodes * model.spec.pair_columns);
    of_pairs.whole.resize(model.spec.pair_classes > 0 ? real_nodes * real_nodes : 0);
    const char* kind = samples.lines.empty() ? "row" : "line";
    return {std::move(samples.table.values),
            std::move(samples.table.whole),
            static_cast<int>(real_nodes),
            depends_on_input ? fmt::format("for the {} of --input", kind) : any_input,
            true,
            std::move(of_pairs.values),
            std::move(of_pairs.whole)};
  }
  if (!depends_on_input) {
    return {std::vector<float>(nodes * pattern.real), std::vector<int32_t>(nodes * pattern.whole),
            model.spec.real_nodes, any_input};
  }
  if (model.origin.task.empty()) return {};
  const Dataset sample =
      make_dataset({.task = &task_of(model.origin, path),
                    .length = model.origin.length,
                    .samples = 1,
                    .range = training_range(model.origin.range, model.origin.integers),
                    .purpose = Purpose::evaluation_data});
  return {{sample.inputs.begin(), sample.inputs.end()},
          {sample.tokens.begin(), sample.tokens.end()},
          model.spec.real_nodes,
          "for one random input; --input shows another",
          true,
          {sample.pairs.begin(), sample.pairs.end()},
          {sample.pair_classes.begin(), sample.pair_classes.end()}};
}

std::optional<AttentionMaps> attention_maps(const Model& model, const std::string& path,
                                            const InspectFlags& options) {
  const InputRow row = attention_input(model, path, options.input, options.pairs);
  if (row.real_nodes == 0 || !shows_attention(model.spec)) return std::nullopt;
  AttentionMaps maps{.caption = row.note,
                     .depth = model.spec.applied_layers(row.real_nodes),
                     .heads = model.spec.heads,
                     .nodes = row.real_nodes + model.spec.scratch_nodes,
                     .scratch_nodes = model.spec.scratch_nodes,
                     .weights = Network(model.spec).attention(model.parameters, row.batch())};
  const TaskText* text = text_of(model);
  if (text != nullptr && row.named) maps.names = node_texts(*text, row.batch());
  return maps;
}

// "40..60" of the nodes of the input.
AttentionMaps chosen_part(const AttentionMaps& maps, const std::string& part) {
  const size_t dots = part.find("..");
  const int last_node = maps.nodes - maps.scratch_nodes - 1;
  if (dots != std::string::npos) {
    const int64_t first = parse_integer(part.substr(0, dots), "--part");
    const int64_t last = parse_integer(part.substr(dots + 2), "--part");
    if (first >= 0 && first <= last && last <= last_node) {
      AttentionMaps chosen = part_of(maps, static_cast<int>(first), static_cast<int>(last));
      chosen.caption += fmt::format("; nodes {} to {}", first, last);
      return chosen;
    }
  }
  throw Error(ExitCode::usage, fmt::format("--part '{}'", part),
              fmt::format("nodes, as 40..60, from 0 to {}", last_node));
}

// Throws where there is none to show, or not of what was asked for.
void check_attention(const Model& model, const std::optional<AttentionMaps>& attention,
                     const InspectFlags& options) {
  if (!shows_attention(model.spec)) {
    throw Error(ExitCode::usage, fmt::format("attention maps of {} nodes", model.spec.nodes()),
                fmt::format("at most {}", most_routed_nodes),
                "the tensors attn.routes name the node that each node reads");
  }
  if (!attention) {
    throw Error(ExitCode::usage, "this model's attention depends on its input", "--input",
                "add --input 1,2,... with the numbers of one sample");
  }
  if (options.node && (*options.node < 0 || *options.node >= attention->nodes)) {
    throw Error(ExitCode::usage, fmt::format("--node {}", *options.node),
                fmt::format("0 to {}", attention->nodes - 1));
  }
}

ExitCode inspect(const InspectFlags& options) {
  check_ending("--attention", options.attention, ".svg");
  refuse_with_standard_output(options.attention, options.json, "--json");
  refuse_with_standard_output(options.attention, options.node.has_value(), "--node");
  const std::filesystem::path path = find_model(options.model);
  const Model model = read_model(path, options.hints);
  Inspection inspection{path.string(), &model, attention_maps(model, path.string(), options),
                        options.node};
  if (!options.attention.empty() || !options.part.empty() || options.node) {
    check_attention(model, inspection.attention, options);
  }
  if (!options.part.empty())
    inspection.attention = chosen_part(*inspection.attention, options.part);
  if (!options.attention.empty()) {
    const AttentionMaps& maps = *inspection.attention;
    write_result(options.attention,
                 attention_svg(maps, fmt::format("{}, {}", path.string(), maps.caption),
                               attention_scale_end(maps)));
  }
  if (is_standard_output(options.attention)) return ExitCode::done;
  write_output(options.json ? inspection_json(inspection) : inspection_text(inspection));
  if (!options.json) say_written("attention maps", options.attention);
  return ExitCode::done;
}

void add_inspect_options(CLI::App& command, InspectFlags& options) {
  argument(command, "MODEL", options.model, "A model file or run folder")->required();
  option(command, "--attention", options.attention, "FILE.svg",
         "Draw the attention matrices; '-': to standard output");
  add_input_option(command, options.input,
                   "Numbers or text, for attention that depends on the input");
  add_pairs_option(command, options.pairs);
  CLI::Option* part =
      option(command, "--part", options.part, "NODES", "Only these nodes of the input, as 40..60");
  CLI::Option* node = option(command, "--node", options.node, "INT",
                             "Where this node looks most, in place of the maps")
                          ->excludes(part);
  add_json_flag(command, options.json).excludes(node);
  add_hint_flags(command, options.hints);
}

const Command registered_inspect(
    {.name = "inspect",
     .group = Group::train,
     .summary = "Show the sizes, parameters and attention of a model",
     .examples = {"posattn inspect runs/cumulative-sum/positional-seed0",
                  "posattn inspect model.safetensors --attention attention.svg",
                  "posattn inspect model.safetensors --input 1,2,3,4,5,6,7,8",
                  "posattn inspect runs/k-hop/standard-seed0 --input words.txt --node 7",
                  "posattn inspect runs/k-hop/standard-seed0 --input words.txt --part 0..6",
                  "posattn inspect theirs.safetensors --architecture standard --length 8"}},
    add_inspect_options, inspect);

}  // namespace

}  // namespace posattn
