// posattn inspect
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "posattn/base/file.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/inspect_output.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/terminal.h"
#include "posattn/evaluation/csv.h"
#include "posattn/evaluation/table_io.h"
#include "posattn/model/network.h"
#include "posattn/report/attention_svg.h"
#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

struct Options {
  std::string model, attention, input;
  bool json = false;
  ModelHints hints;
};

struct Row {
  std::vector<float> values;
  std::string note;
};

// The input to show the attention for; empty when there is none. `--input` is a file, whose first
// row counts, or the numbers themselves.
Row attention_input(const Model& model, const std::string& input) {
  const int64_t size = int64_t{1} * model.spec.real_nodes * model.spec.data_columns;
  const bool depends_on_input = model.spec.attention != AttentionSource::positions;
  if (!input.empty()) {
    std::error_code ignored;
    const Table table = std::filesystem::exists(input, ignored) ? read_table(input, size)
                                                                : parse_csv(input, "--input", size);
    const auto first = table.values.begin();
    return {std::vector<float>(first, first + size),
            depends_on_input ? "for the row of --input" : "the same for every input"};
  }
  if (!depends_on_input) return {std::vector<float>(size), "the same for every input"};
  if (model.origin.task.empty()) return {};
  const Dataset sample =
      make_dataset({.task = &find_task(model.origin.task),
                    .length = model.origin.length,
                    .samples = 1,
                    .range = training_range(model.origin.range, model.origin.integers),
                    .purpose = Purpose::evaluation_data});
  return {std::vector<float>(sample.inputs.begin(), sample.inputs.end()),
          "for one random input; --input 1,2,... shows another"};
}

std::optional<AttentionMaps> attention_maps(const Model& model, const std::string& input) {
  Row row = attention_input(model, input);
  if (row.values.empty()) return std::nullopt;
  const Batch batch{.inputs = row.values.data(), .samples = 1, .real_nodes = model.spec.real_nodes};
  return AttentionMaps{.caption = std::move(row.note),
                       .depth = model.spec.depth,
                       .heads = model.spec.heads,
                       .nodes = model.spec.nodes(),
                       .scratch_nodes = model.spec.scratch_nodes,
                       .weights = Network(model.spec).attention(model.parameters, batch)};
}

ExitCode inspect(const Options& options) {
  const std::filesystem::path path = find_model(options.model);
  const Model model = load_model(path, options.hints);
  const Inspection inspection{path.string(), &model, attention_maps(model, options.input)};
  if (!options.attention.empty()) {
    if (!inspection.attention) {
      throw Error(ExitCode::usage, "this model's attention depends on its input", "--input",
                  "add --input 1,2,... with the numbers of one sample");
    }
    const AttentionMaps& maps = *inspection.attention;
    write_file(options.attention,
               attention_svg(maps.weights, maps.depth, maps.heads, maps.nodes, maps.scratch_nodes,
                             fmt::format("{}, {}", path.string(), maps.caption)));
  }
  write_output(options.json ? inspection_json(inspection) : inspection_text(inspection));
  return ExitCode::done;
}

}  // namespace

void add_inspect(Program& program) {
  auto options = std::make_shared<Options>();
  CLI::App& command = add_command(
      program,
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
  command.add_option("--attention", options->attention, "Draw the attention matrices")
      ->option_text("FILE.svg");
  command
      .add_option("--input", options->input,
                  "Numbers or a file of them, for attention that depends on the input")
      ->option_text("ROW");
  add_json_flag(command, options->json);
  add_hint_flags(command, options->hints);
}

}  // namespace posattn
