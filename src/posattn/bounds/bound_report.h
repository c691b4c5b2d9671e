// Everything that the theory says of one trained model, and what was measured: norms, factors,
// bounds and the measured gap.
#pragma once

#include <cmath>

#include "posattn/bounds/count_bound.h"
#include "posattn/bounds/network_norms.h"
#include "posattn/bounds/norm_bound.h"
#include "posattn/bounds/weight_norms.h"
#include "posattn/model/file/model_file.h"
#include "posattn/tasks/dataset.h"
#include "posattn/training/run_config.h"

namespace posattn::bounds {

// The measured gap: the clipped loss, which the bounds are about, over a run's own training set and
// over fresh samples of the same distribution.

struct ClippedLoss {
  double mean = 0;            // over samples and nodes, of min((f_i - y_i)^2, b^2)
  double standard_error = 0;  // of the mean, from the spread over samples
  int64_t samples = 0;
};
ClippedLoss clipped_loss(const Model& model, const Dataset& data, double clip, int threads);

struct MeasuredGap {
  ClippedLoss training, fresh;
  double gap() const { return fresh.mean - training.mean; }
  double standard_error() const;  // of the gap, from the spread over samples
  // Whether the gap is below twice its standard error, so that it may be zero.
  bool within_error() const { return std::abs(gap()) < 2 * standard_error(); }
};

// Throws Error(configuration) for a run without one training set of its own (fresh samples every
// epoch, several lengths).
MeasuredGap measure_gap(const Model& model, const RunConfig& config, double clip,
                        int64_t fresh_samples, int threads);

// Fresh samples like those the model was trained on; its task must be known.
Dataset fresh_samples_of(const Model& model, int64_t samples, int threads);

struct ReportRequest {
  std::string name;                        // of the model, for messages and tables
  std::optional<RunConfig> run = {};       // absent: a model file alone, nothing is measured
  std::optional<int64_t> samples = {};     // m; absent: the run's own
  std::optional<double> samples_for = {};  // the gap that samples_needed is asked for
  std::optional<double> range = {};        // R; absent: the range that it was trained on
  double clip = 1, delta = 0.05;
  int64_t fresh_samples = 100'000;
  double query_key_scale = 1;  // W_Q, W_K and their biases times this, in the bounds
  int threads = 1;
};

struct BoundReport {
  std::string name;
  ModelSpec spec;
  ModelOrigin origin;
  std::optional<RunConfig> run;
  BoundSetting setting;
  std::vector<LayerWeightNorms> weights;
  NetworkNorms norms;
  NormBound by_norms;
  CountBound by_count;
  std::optional<SamplesNeeded> needed;  // where samples_for asks
  std::optional<MeasuredGap> measured;  // on the run's own training set
  // On the risk; only where m is the run's own, as it needs the training loss.
  std::optional<double> small_loss;
};

// Throws Error(configuration) with the reason for a model that no bound covers, Error(usage) for a
// setting that makes no sense, as m below 1 or a range smaller than the model was trained on.
BoundReport bound_report(const Model& model, const ReportRequest& request);

// One of the `models` of `posattn bound --json` (docs/files.md); bound_report.cc writes it.
std::string to_json(const BoundReport& report);

// How many times as large as the measured gap a bound is, as a logarithm. Where the gap is within
// twice its standard error, so that it may be nothing: at least so many times.
struct RatioToGap {
  double log = 0;
  bool at_least = false;
};
std::optional<RatioToGap> ratio_to_gap(const BoundReport& report, double log_bound);

}  // namespace posattn::bounds
