#include "posattn/cli/grid_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "posattn/base/text.h"

namespace posattn {
namespace {

// Adds "--flag value" unless the value is empty.
void add_words(std::vector<std::string>& words, const std::string& flag, const std::string& value) {
  if (!value.empty()) words.insert(words.end(), {flag, value});
}

}  // namespace

void add_grid_options(CLI::App& command, GridChoice& choice) {
  ExperimentChanges& changes = choice.changes;
  command.add_option("EXPERIMENT", choice.experiment, "Name ('posattn experiments') or file")
      ->required()
      ->type_name("");
  command.add_option("--tasks", changes.tasks, "Only these, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("LIST");
  command.add_option("--lines", changes.lines, "Only these lines of the figure")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("LIST");
  command.add_option("--runs", changes.runs, "Only the first N seeds")->option_text("N");
  command.add_option("--seeds", choice.seeds, "These seeds, as 0..9 or 1,5,7..9")
      ->option_text("LIST");
  command.add_option("--values", choice.values, "Only these values of the axis, as 1,2,10")
      ->option_text("LIST");
  command.add_option("--epochs", changes.epochs, "Train for this many epochs")->option_text("INT");
  command.add_option("--device", changes.device, "Where to compute: auto, cpu or cuda")
      ->option_text("TEXT");
  command.add_option("--precision", changes.precision, "Of products on the GPU: fp32 or tf32")
      ->option_text("TEXT");
  command
      .add_option("--weights", changes.weights,
                  "Fine-tune the GPT-2 of this folder (mixed-type-gpt2)")
      ->option_text("FOLDER");
  command.add_flag("--quick", changes.quick, "A small version, for a first look");
  command.add_option("--results", choice.results, "Results folder")->option_text("DIR [results]");
  command.add_flag("--fail-fast", choice.fail_fast, "Stop when a run fails");
}

Experiment chosen_part(const GridChoice& choice) {
  ExperimentChanges changes = choice.changes;
  if (!choice.seeds.empty()) changes.seeds = parse_seeds(choice.seeds);
  if (!choice.values.empty()) changes.values = parse_scales(choice.values, "--values");
  return load_experiment(choice.experiment, changes);
}

Experiment whole_experiment(const GridChoice& choice) {
  ExperimentChanges changes;
  changes.quick = choice.changes.quick;
  changes.epochs = choice.changes.epochs;
  changes.precision = choice.changes.precision;
  changes.weights = choice.changes.weights;
  return load_experiment(choice.experiment, changes);
}

std::vector<std::string> whole_words(const GridChoice& choice) {
  std::vector<std::string> words;
  if (choice.changes.quick) words.emplace_back("--quick");
  if (choice.changes.epochs) add_words(words, "--epochs", std::to_string(*choice.changes.epochs));
  add_words(words, "--precision", choice.changes.precision);
  add_words(words, "--weights", choice.changes.weights);
  return words;
}

std::vector<std::string> chosen_words(const GridChoice& choice) {
  std::vector<std::string> words;
  add_words(words, "--tasks", fmt::format("{}", fmt::join(choice.changes.tasks, ",")));
  add_words(words, "--lines", fmt::format("{}", fmt::join(choice.changes.lines, ",")));
  if (choice.changes.runs) add_words(words, "--runs", std::to_string(*choice.changes.runs));
  add_words(words, "--seeds", choice.seeds);
  add_words(words, "--values", choice.values);
  add_words(words, "--device", choice.changes.device);
  for (const std::string& word : whole_words(choice)) words.push_back(word);
  if (choice.fail_fast) words.emplace_back("--fail-fast");
  return words;
}

}  // namespace posattn
