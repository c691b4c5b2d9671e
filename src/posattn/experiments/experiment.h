// An experiment as data: a grid of training runs over tasks, lines (architectures and their
// variants), seeds and one axis, read from a TOML file. Those of the paper are part of the program
// (experiments/*.toml, embedded by the build); users write their own in the same form.
//
//   title = "Loss outside the training range"
//   paper = "Figure 4"                        # optional: what it reproduces
//   description = "..."                       # optional, one paragraph
//   tasks = ["cumulative-sum", "sort"]
//   seeds = "0..9"
//   metric = "mse"                            # or "accuracy", ...: one of metrics(); without it
//                                             # the loss of the tasks
//   baselines = ["query-blind"]               # optional: predictors of the tasks, as more lines
//
//   [axis]
//   key = "test-scales"                       # each run is tested at all values (also
//   values = [1, 2, 3]                        # "test-lengths", or an axis that the tasks state,
//                                             # as "k"), or a key of [settings] that has one value
//                                             # per run: "samples"
//   label = "c"                               # under the figure's axis
//   test-scale = 3                            # where the axis is a setting: c of the test loss,
//                                             # or test-length = 16: its n, or on an axis
//                                             # that the tasks state: test-axis = "k=3"
//   steps = 15000                             # where the axis is "samples": each run takes this
//                                             # many steps, so its epochs follow from its samples
//
//   [settings]                                # keys of `posattn train --config`
//   samples = 30000
//
//   [[lines]]
//   name = "positional"                       # in tables and figures
//   architecture = "positional"               # and any other key of [settings]
//
//   [quick]                                   # --quick: what differs, each optional
//   tasks = ["cumulative-sum"]
//   seeds = "0..1"
//   values = [1, 3, 10]
//   steps = 1000
//   settings = { epochs = 100 }
//
//   [[views]]                                 # other ways to show the same runs, each optional
//   name = "accuracy"                         # like an experiment's; of a file: mine.toml:accuracy
//   title = "The share of right answers"      # and paper, description: a view's own
//   metric = "accuracy"                       # and baselines, lines: in the place of the file's
//   axis = { values = [1, 10] }               # changes keys of [axis]; with a key it replaces it,
//                                             # and values of [quick] do not hold
//
// A view trains nothing of its own: each of its runs is one of the experiment's.
#pragma once

#include <algorithm>
#include <utility>

#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/metrics/metric.h"
#include "posattn/training/run_config.h"

namespace posattn {

// A curve of every panel.
struct ExperimentLine {
  std::string name;
  std::vector<std::pair<std::string, std::string>> settings;  // key, value as set_field reads it
  // A predictor that the tasks offer (tasks/task.h): it has no runs.
  bool is_baseline = false;
};

struct ExperimentAxis {
  std::string key;             // EvaluationAxis::setting or another key of RunConfig
  std::vector<double> values;  // ascending
  std::string label;
  // The tests that are shown: all along this axis where it is the experiment's own, otherwise those
  // at test_x.
  EvaluationAxis test_axis = *evaluation_axes().front();
  double test_x = 1;
  int64_t steps = 0;  // of each run, whatever its samples; 0: runs have equal epochs instead

  // Each run is tested at all values: it is in every point.
  bool is_tested() const {
    return key == (test_axis.stated ? test_axis.name : test_axis.setting());
  }
  // Whether runs have this setting from the axis, so that nothing else may state it.
  bool decides(std::string_view setting) const {
    return !is_tested() && (setting == key || (steps > 0 && setting == "epochs"));
  }
  std::string name() const { return is_tested() ? test_axis.name : key; }
};

struct Experiment {
  std::string name;     // of the file or the view: "value-range"
  std::string view_of;  // of the file where this is a view, else empty
  // Part of the program, or a file with the very text: only then are the published results of this
  // name about it.
  bool is_embedded = false;
  std::string title, paper, description;
  std::vector<std::string> tasks;
  std::vector<uint64_t> seeds;
  const Metric* metric = &training_loss();
  ExperimentAxis axis;
  RunConfig settings;                 // device, path, precision: how runs are computed by default
  bool states_precision = false;      // by the file; else fp32, or what --precision says
  std::vector<ExperimentLine> lines;  // baselines after the others
  // "value-range"; "value-range-quick", "value-range-epochs100" and "value-range-tf32" where
  // --quick, --epochs or --precision change what is trained: folder and files of its results.
  std::string output_name;
  // Baselines are measured, not trained: none of their runs can be missing.
  bool is_baseline(std::string_view line) const {
    const auto found = std::ranges::find(lines, line, &ExperimentLine::name);
    return found != lines.end() && found->is_baseline;
  }
  // What --quick and --epochs reduced, in words for the figure: "quick: 100 epochs, 2 runs"; empty
  // for the whole experiment.
  std::string reduction;
};

// One run of the grid. Runs with the same settings are the same run, in whichever experiment.
struct ExperimentRun {
  std::string task;
  std::string line;
  std::optional<double> x;  // where the axis is a setting
  RunConfig config;
  // Identifies the run by what decides its result (not the device or threads): the name of its
  // folder, "cumulative-sum-positional-seed3-1f0c9a...".
  std::string key;
};

// What the command line changes. Empty and absent: as the file says.
struct ExperimentChanges {
  bool quick = false;
  std::vector<std::string> tasks = {};  // a part of the file's
  std::vector<std::string> lines = {};  // a part of the file's
  std::optional<int64_t> runs = {};     // the first N seeds
  std::vector<uint64_t> seeds = {};
  std::optional<int64_t> epochs = {};
  std::vector<double> values = {};                     // a part of the axis
  std::string device = {}, precision = {}, path = {};  // of all runs
  // The folder of a GPT-2: its weights, tokens and fine-tuning in the place of a small model of
  // bytes. Only for experiments whose tasks are written.
  std::string weights = {};
};

// Names of the embedded experiments and their views, in the order of the documentation.
std::vector<std::string> experiment_names();

// The file that an embedded experiment or view stands in: its name without .toml, and its text.
struct ExperimentFile {
  std::string name;
  std::string_view text;
};
std::optional<ExperimentFile> embedded_experiment(const std::string& name);

// An embedded experiment or view by name, a file by its path (anything that ends in .toml or
// exists), or a view of a file: "mine.toml:VIEW". Throws unknown_name(usage) for a name that is
// neither, Error(configuration) with file and line for what the file says wrong: unknown keys,
// tasks, settings that cannot work together; also for a file whose results would take the folder of
// an embedded experiment.
Experiment load_experiment(const std::string& name_or_file, const ExperimentChanges& changes = {});
Experiment read_experiment(std::string_view toml, const std::string& name, const std::string& where,
                           const ExperimentChanges& changes = {}, const std::string& view = "");
// Throws for a view that cannot be read or shows what the experiment does not train.
void check_views(std::string_view toml, const std::string& name, const std::string& where);

// Which changes make the output name "NAME-quick-epochs100-tf32"; nothing when it is not one of
// NAME's.
std::optional<ExperimentChanges> changes_of_output(const std::string& output,
                                                   const std::string& name);

// Every run of the grid: by task, then x, then line, then seed. Each is valid. Throws
// Error(configuration) for more than 100,000.
std::vector<ExperimentRun> runs_of(const Experiment& experiment);

// The runs without those whose key came before.
std::vector<ExperimentRun> each_once(const std::vector<ExperimentRun>& runs);

// The ExperimentRun::key of one configuration.
std::string run_key(const RunConfig& config);

// What --precision means where it is left out. Results in fp32 lie in DIR/NAME, those in tf32 in
// DIR/NAME-tf32: runs of the two are never mixed.

// The precision of runs to train: tf32 where `posattn train` would train each of them in it, unless
// there are results in fp32 already, which go on in fp32. Empty: as the file says.
std::string precision_to_train(const Experiment& experiment, const std::filesystem::path& results);

// The precision of results to read: tf32 where there are no others. Empty: as the file says.
std::string precision_to_read(const Experiment& experiment, const std::filesystem::path& results);

}  // namespace posattn
