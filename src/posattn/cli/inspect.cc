// posattn inspect
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>

#include "posattn/base/text.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/given_input.h"
#include "posattn/cli/inspect_output.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/output_file.h"
#include "posattn/cli/terminal.h"
#include "posattn/evaluation/predict.h"
#include "posattn/evaluation/samples_io.h"
#include "posattn/model/network.h"
#include "posattn/report/svg/attention_svg.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

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

void check_flags(const InspectFlags& options) {
  check_ending("--attention", options.attention, ".svg");
  refuse_with_standard_output(options.attention, options.json, "--json");
  refuse_with_standard_output(options.attention, options.node.has_value(), "--node");
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
  check_flags(options);
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
