// The options that `reproduce`, `submit` and `compare` share: they choose runs of an experiment and
// the results folder.
#pragma once

#include <string>
#include <vector>

#include "posattn/experiments/experiment.h"

namespace CLI {
class App;
}

namespace posattn {

struct GridChoice {
  std::string experiment, seeds, values;
  ExperimentChanges changes;
  std::string results = "results";
  bool fail_fast = false;
};

void add_grid_options(CLI::App& command, GridChoice& choice);

// The part that is trained.
Experiment chosen_part(const GridChoice& choice);
// What tables and figures show: all tasks, lines, seeds and values.
Experiment whole_experiment(const GridChoice& choice);

// The options of whole_experiment, and all that were given but --results.
std::vector<std::string> whole_words(const GridChoice& choice);
std::vector<std::string> chosen_words(const GridChoice& choice);

}  // namespace posattn
