#include "posattn/cli/grid_choice.h"

#include "posattn/base/text.h"
#include "posattn/cli/commands.h"

namespace posattn {
namespace {

// Adds "--flag value" unless the value is empty.
void add_words(std::vector<std::string>& words, const std::string& flag, const std::string& value) {
  if (!value.empty()) words.insert(words.end(), {flag, value});
}

}  // namespace

void add_grid_options(CLI::App& command, GridChoice& choice) {
  ExperimentChanges& changes = choice.changes;
  argument(command, "EXPERIMENT", choice.experiment, "Name ('posattn experiments') or file")
      ->required();
  option(command, "--tasks", changes.tasks, "LIST", "Only these, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  option(command, "--lines", changes.lines, "LIST", "Only these lines of the figure")
      ->delimiter(',')
      ->allow_extra_args(false);
  option(command, "--runs", changes.runs, "N", "Only the first N seeds");
  option(command, "--seeds", choice.seeds, "LIST", "These seeds, as 0..9 or 1,5,7..9");
  option(command, "--values", choice.values, "LIST", "Only these values of the axis, as 1,2,10");
  option(command, "--epochs", changes.epochs, "INT", "Train for this many epochs");
  option(command, "--device", changes.device, "TEXT", "Where to compute: auto, cpu or cuda");
  option(command, "--precision", changes.precision, "TEXT",
         "Precision of products on the GPU: fp32 or tf32");
  option(command, "--weights", changes.weights, "FOLDER",
         "Fine-tune the GPT-2 of this folder (mixed-type-gpt2)");
  command.add_flag("--quick", changes.quick, "A small version, for a first look");
  option(command, "--results", choice.results, "DIR [results]", "Results folder");
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
