// posattn inspect
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "posattn/cli/commands.h"
#include "posattn/cli/inspect_output.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/output_file.h"
#include "posattn/cli/terminal.h"
#include "posattn/evaluation/csv.h"
#include "posattn/evaluation/predict.h"
#include "posattn/evaluation/table_io.h"
#include "posattn/model/network.h"
#include "posattn/report/svg/attention_svg.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

struct InspectFlags {
  std::string model, attention, input;
  bool json = false;
  ModelHints hints;
};

struct InputRow {
  std::vector<float> values;
  std::vector<int32_t> tokens;
  int real_nodes = 0;  // 0: there is no row
  std::string note;
};

// `input` is a file, whose first row counts, or the numbers themselves.
Table read_input(const std::string& input, int64_t columns, const RowPattern& pattern) {
  std::error_code ignored;
  if (std::filesystem::exists(input, ignored)) return read_table(input, columns, pattern);
  if (input.find_first_not_of("0123456789+-.eE, \t") != std::string::npos) {
    throw Error(ExitCode::data, fmt::format("--input '{}': there is no such file", input),
                "a file, or the numbers of one row, as 1,2,3");
  }
  return parse_csv(input, "--input", columns, pattern);
}

// The input to show the attention for; empty when there is none.
InputRow attention_input(const Model& model, const std::string& path, const std::string& input) {
  const RowPattern pattern = row_pattern(model.spec);
  const int64_t nodes = model.spec.real_nodes;
  const bool depends_on_input = model.spec.attention != AttentionSource::positions;
  const std::string any_input = model.origin.variable_length
                                    ? "the same for every input of this length"
                                    : "the same for every input";
  if (!input.empty()) {
    Table table = read_input(
        input, model.origin.variable_length ? 0 : nodes * (pattern.whole + pattern.real), pattern);
    const int real_nodes = samples_of(model, table, "--input").real_nodes;
    table.values.resize(real_nodes * pattern.real);  // the first row
    table.whole.resize(real_nodes * pattern.whole);
    return {std::move(table.values), std::move(table.whole), real_nodes,
            depends_on_input ? "for the row of --input" : any_input};
  }
  if (!depends_on_input) {
    return {std::vector<float>(nodes * pattern.real), std::vector<int32_t>(nodes * pattern.whole),
            model.spec.real_nodes, any_input};
  }
  if (model.origin.task.empty()) return {};
  const Dataset sample =
      make_dataset({.task = &task_named_in(path, model.origin.task),
                    .length = model.origin.length,
                    .samples = 1,
                    .range = training_range(model.origin.range, model.origin.integers),
                    .purpose = Purpose::evaluation_data});
  return {{sample.inputs.begin(), sample.inputs.end()},
          {sample.tokens.begin(), sample.tokens.end()},
          model.spec.real_nodes,
          "for one random input; --input 1,2,... shows another"};
}

std::optional<AttentionMaps> attention_maps(const Model& model, const std::string& path,
                                            const std::string& input) {
  InputRow row = attention_input(model, path, input);
  if (row.real_nodes == 0 || !shows_attention(model.spec)) return std::nullopt;
  const Batch batch{
      .inputs = row.values, .samples = 1, .real_nodes = row.real_nodes, .tokens = row.tokens};
  return AttentionMaps{.caption = std::move(row.note),
                       .depth = model.spec.depth,
                       .heads = model.spec.heads,
                       .nodes = row.real_nodes + model.spec.scratch_nodes,
                       .scratch_nodes = model.spec.scratch_nodes,
                       .weights = Network(model.spec).attention(model.parameters, batch)};
}

ExitCode inspect(const InspectFlags& options) {
  const bool to_output = is_standard_output(options.attention);
  if (!options.attention.empty() && !options.attention.ends_with(".svg") && !to_output) {
    throw Error(ExitCode::usage, fmt::format("--attention '{}'", options.attention),
                "a name that ends in .svg, or - for standard output");
  }
  refuse_with_standard_output(options.attention, options.json, "--json");
  const std::filesystem::path path = find_model(options.model);
  const Model model = read_model(path, options.hints);
  const Inspection inspection{path.string(), &model,
                              attention_maps(model, path.string(), options.input)};
  if (!options.attention.empty()) {
    if (!shows_attention(model.spec)) {
      throw Error(ExitCode::usage, fmt::format("attention maps of {} nodes", model.spec.nodes()),
                  fmt::format("at most {}", most_routed_nodes),
                  "the tensors attn.routes name the node that each node reads");
    }
    if (!inspection.attention) {
      throw Error(ExitCode::usage, "this model's attention depends on its input", "--input",
                  "add --input 1,2,... with the numbers of one sample");
    }
    const AttentionMaps& maps = *inspection.attention;
    write_result(
        options.attention,
        attention_svg(maps.weights, maps.depth, maps.heads, maps.nodes, maps.scratch_nodes,
                      fmt::format("{}, {}", path.string(), maps.caption),
                      attention_scale_end(maps.weights, maps.depth, maps.heads, maps.nodes)));
  }
  if (to_output) return ExitCode::done;
  write_output(options.json ? inspection_json(inspection) : inspection_text(inspection));
  if (!options.json && !options.attention.empty()) {
    write_output(fmt::format("attention maps in {}\n", options.attention));
  }
  return ExitCode::done;
}

}  // namespace

void add_inspect(CommandLine& command_line) {
  auto options = std::make_shared<InspectFlags>();
  CLI::App& command = add_command(
      command_line,
      {.name = "inspect",
       .description = "Show what a model is: its sizes, parameters and attention",
       .examples = {"posattn inspect runs/cumulative-sum/positional-seed0",
                    "posattn inspect model.safetensors --attention attention.svg",
                    "posattn inspect model.safetensors --input 1,2,3,4,5,6,7,8",
                    "posattn inspect theirs.safetensors --architecture standard --length 8"}},
      [options] { return inspect(*options); });
  command.add_option("MODEL", options->model, "A model file or run folder")
      ->required()
      ->type_name("");
  command
      .add_option("--attention", options->attention,
                  "Draw the attention matrices; '-': to standard output")
      ->option_text("FILE.svg");
  command
      .add_option("--input", options->input,
                  "Numbers or a file of them, for attention that depends on the input")
      ->option_text("ROW");
  add_json_flag(command, options->json);
  add_hint_flags(command, options->hints);
}

}  // namespace posattn
