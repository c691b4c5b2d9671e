// posattn predict
#include "posattn/evaluation/predict.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "posattn/base/file.h"
#include "posattn/base/text.h"
#include "posattn/cli/carried_program.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/output_file.h"
#include "posattn/cli/predict_answers.h"
#include "posattn/cli/terminal.h"
#include "posattn/evaluation/csv.h"
#include "posattn/evaluation/npy.h"
#include "posattn/evaluation/table_io.h"

namespace posattn {
namespace {

struct PredictFlags {
  std::string model, input = "-", output = "-", format;
  int threads = 0;
  bool scores = false, json = false;
  ModelHints hints;
};

std::string rows_as_json(const Table& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  const auto add_rows = [&](const auto& numbers) {
    for (auto first = numbers.begin(); first != numbers.end(); first += table.columns) {
      rows.push_back(std::vector(first, first + table.columns));
    }
  };
  add_rows(table.values);
  add_rows(table.whole);
  return nlohmann::ordered_json{{"rows", table.rows}, {"columns", table.columns}, {"outputs", rows}}
             .dump() +
         "\n";
}

bool wants_npy(const PredictFlags& options) {
  return options.format.empty() ? options.output.ends_with(".npy") : options.format == "npy";
}

std::string formatted(const Table& table, const PredictFlags& options) {
  if (options.json) return rows_as_json(table);
  return wants_npy(options) ? to_npy(table) : to_csv(table);
}

// A line of text in, a line of text out.
ExitCode predict_text(const PredictFlags& options, const Model& model) {
  if (options.scores || wants_npy(options)) {
    throw Error(ExitCode::usage, "--scores and NPY for a model that answers in writing",
                "text or --json", "leave them out");
  }
  constexpr uint64_t most_bytes = uint64_t{1} << 30;
  const std::string text = options.input == "-"
                               ? std::string(std::istreambuf_iterator<char>(std::cin), {})
                               : read_text_file(options.input, most_bytes);
  const std::vector<std::string> answers =
      answers_to(model, text, options.input == "-" ? "standard input" : options.input,
                 thread_count(options.threads));
  std::string lines;
  for (const std::string& answer : answers) lines += printable(answer) + "\n";
  if (options.json) {
    lines = nlohmann::ordered_json{{"answers", answers}}.dump(
                -1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
            "\n";
  }
  write_result(options.output, lines);
  return ExitCode::done;
}

ExitCode predict_file(const PredictFlags& options) {
  const std::vector<std::string> formats = {"csv", "npy"};
  if (!options.format.empty() && options.format != "csv" && options.format != "npy") {
    throw unknown_name(ExitCode::usage, "format", options.format, formats);
  }
  if (options.json && wants_npy(options)) {
    throw Error(ExitCode::usage, "--json and NPY output are both asked for", "one of them");
  }
  const int threads = thread_count(options.threads);
  const Model model = read_model(find_model(options.model), options.hints);
  if (written_answers_of(model) != nullptr) return predict_text(options, model);
  const bool classes = model.spec.loss == Loss::cross_entropy;
  if (options.scores && !classes) {
    throw Error(ExitCode::usage, "--scores for a model whose outputs are numbers",
                "a model of classes", "leave --scores out");
  }
  const RowPattern pattern = row_pattern(model.spec);
  const bool piped = options.input == "-";
  const std::string name = piped ? "standard input" : options.input;
  Table input =
      piped ? read_table(std::cin, name, 0, pattern) : read_table(options.input, 0, pattern);
  if (is_compiled(model) && model.origin.notes.contains("program")) {
    check_rows(carried_program(model, options.model), input, name);
  }
  const Batch samples = samples_of(model, input, name);
  Table result;
  result.rows = input.rows;
  result.values = predict(model, samples, threads);
  result.columns = int64_t{1} * samples.real_nodes * model.spec.output_columns;
  if (classes && !options.scores) {
    result = {.rows = input.rows,
              .columns = samples.real_nodes,
              .values = {},
              .whole = decided_classes(result.values, model.spec.output_columns),
              .pattern = {.whole = 1, .real = 0}};
  }
  write_result(options.output, formatted(result, options));
  return ExitCode::done;
}

}  // namespace

void add_predict(CommandLine& command_line) {
  auto options = std::make_shared<PredictFlags>();
  CLI::App& command = add_command(
      command_line,
      {.name = "predict",
       .description = "A model's outputs for rows of numbers or tokens",
       .examples = {"echo 1,2,3,4,5,6,7,8 | posattn predict runs/cumulative-sum/positional-seed0",
                    "posattn predict model.safetensors --input x.csv --output y.csv",
                    "posattn predict model.safetensors --input x.npy --output y.npy"},
       .details =
           "One row per sample: the task's own row (n numbers for the sequence tasks, 2n for\n"
           "min-sum, n x n for path). Input may be CSV or NPY; its content tells which. A model "
           "of\n"
           "tokens reads whole numbers, one with numbers too the token (-1: none) before them; a\n"
           "model of classes answers with the class of each node. A model that was trained on\n"
           "written prompts reads a prompt in each line and writes its answer."},
      [options] { return predict_file(*options); });
  command.add_option("MODEL", options->model, "A model file or run folder")
      ->required()
      ->type_name("");
  command.add_option("--input", options->input, "Rows to read; '-': standard input")
      ->option_text("FILE [-]");
  add_output_option(command, options->output, "File to write; '-': standard output", "FILE [-]");
  CLI::Option* format =
      command
          .add_option("--format", options->format, "csv or npy; npy when the output ends in .npy")
          ->option_text("NAME [csv]");
  command.add_option("--threads", options->threads, "Threads to use; 0: one per core")
      ->option_text("INT [0]");
  command.add_flag("--scores", options->scores, "The score of every class instead of the class");
  add_json_flag(command, options->json).excludes(format);
  add_hint_flags(command, options->hints);
}

}  // namespace posattn
