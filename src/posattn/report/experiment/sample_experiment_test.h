// For the tests: an experiment of two tasks and two lines with results by formula.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "posattn/report/experiment/results.h"

namespace posattn {

inline Experiment sample_experiment() {
  Experiment experiment = read_experiment(R"toml(
title = "Loss by range"
paper = "Figure 4"
description = "Trained on [-2, 2]."
tasks = ["cumulative-sum", "cumulative-min"]
seeds = "0..2"
[axis]
key = "test-scales"
values = [1, 2, 5, 10]
label = "c"
[settings]
samples = 2000
[[lines]]
name = "positional"
architecture = "positional"
[[lines]]
name = "standard"
architecture = "standard"
[quick]
seeds = "0..1"
settings = { epochs = 20 }
)toml",
                                          "value-range", "sample.toml");
  experiment.is_embedded = true;
  return experiment;
}

// Grows like c^3 (positional) or c^4; runs differ by a factor 1 to 3.
inline RunResult sample_result(const ExperimentRun& run) {
  RunResult result;
  result.key = run.key;
  result.configuration = to_json(run.config);
  result.seconds = 10;
  result.device = "cuda";
  result.version = "0.1.0";
  result.commit = "abc";
  result.measurements = {{Split::train, "", 0, "mse", 1e-5},
                         {Split::validation, "", 0, "mse", 2e-5}};
  const bool positional = run.config.architecture == "positional";
  const auto factor = static_cast<double>(1 + run.config.seed);
  for (int c = 1; c <= 10; ++c) {
    const double mse = factor * (positional ? 1e-4 * std::pow(c, 3) : 1e-2 * std::pow(c, 4));
    const double accuracy = positional ? 1.0 : 1.0 / c;
    set_value(result.measurements, {.axis = "c", .x = 1.0 * c, .metric = "mse"}, mse);
    set_value(result.measurements, {.axis = "c", .x = 1.0 * c, .metric = "accuracy"}, accuracy);
  }
  return result;
}

// The results of every run of the experiment.
inline FindResult sample_results(const Experiment& experiment) {
  std::vector<RunResult> all;
  for (const ExperimentRun& run : runs_of(experiment)) all.push_back(sample_result(run));
  return [all](const std::string& key) -> std::optional<RunResult> {
    for (const RunResult& result : all) {
      if (result.key == key) return result;
    }
    return {};
  };
}

inline std::vector<Curve> sample_curves(const Experiment& experiment) {
  return curves_of(experiment, sample_results(experiment));
}

// The published medians are `factor` times ours.
inline std::vector<PublishedPoint> sample_published(const Experiment& experiment, double factor) {
  std::vector<PublishedPoint> points;
  for (PointSummary point : summarise(experiment, sample_curves(experiment))) {
    for (double* value : {&point.minimum, &point.q10, &point.median, &point.q90, &point.maximum}) {
      *value *= factor;
    }
    point.runs = 10;
    points.push_back({point, ""});
  }
  return points;
}

inline ExperimentResults sample_experiment_results() {
  ExperimentResults results;
  results.experiment = sample_experiment();
  results.curves = sample_curves(results.experiment);
  results.published = sample_published(results.experiment, 1.5);
  results.tally = tally_runs(results.experiment, sample_results(results.experiment));
  results.command = "posattn reproduce value-range --results results";
  results.manifest = "{\n  \"runs\": 12\n}";
  return results;
}

}  // namespace posattn
