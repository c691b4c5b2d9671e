// posattn predict
#include "posattn/evaluation/predict.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/output_file.h"
#include "posattn/cli/terminal.h"
#include "posattn/evaluation/csv.h"
#include "posattn/evaluation/npy.h"
#include "posattn/evaluation/table_io.h"

namespace posattn {
namespace {

struct PredictFlags {
  std::string model, input = "-", output = "-", format;
  int threads = 0;
  bool json = false;
  ModelHints hints;
};

std::string rows_as_json(const Table& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (int64_t row = 0; row < table.rows; ++row) {
    const auto first = table.values.begin() + row * table.columns;
    rows.push_back(std::vector<float>(first, first + table.columns));
  }
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

ExitCode predict(const PredictFlags& options) {
  const std::vector<std::string> formats = {"csv", "npy"};
  if (!options.format.empty() && options.format != "csv" && options.format != "npy") {
    throw unknown_name(ExitCode::usage, "format", options.format, formats);
  }
  if (options.json && wants_npy(options)) {
    throw Error(ExitCode::usage, "--json and NPY output are both asked for", "one of them");
  }
  const int threads = thread_count(options.threads);
  const Model model = read_model(find_model(options.model), options.hints);
  const Table input =
      options.input == "-" ? read_table(std::cin, "standard input") : read_table(options.input);
  Table result;
  result.rows = input.rows;
  result.columns = output_columns_for(model, input.columns);
  result.values = predict_rows(model, input.values, input.rows, threads);
  write_result(options.output, formatted(result, options));
  return ExitCode::done;
}

}  // namespace

void add_predict(CommandLine& command_line) {
  auto options = std::make_shared<PredictFlags>();
  CLI::App& command = add_command(
      command_line,
      {.name = "predict",
       .description = "A model's outputs for rows of numbers",
       .examples = {"echo 1,2,3,4,5,6,7,8 | posattn predict runs/cumulative-sum/positional-seed0",
                    "posattn predict model.safetensors --input x.csv --output y.csv",
                    "posattn predict model.safetensors --input x.npy --output y.npy"},
       .details =
           "One row per sample: the task's own row (n numbers for the sequence tasks, 2n for\n"
           "min-sum, n x n for path). Input may be CSV or NPY; its content tells which."},
      [options] { return predict(*options); });
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
  add_json_flag(command, options->json).excludes(format);
  add_hint_flags(command, options->hints);
}

}  // namespace posattn
