// Everything that the theory says of one trained model, and what was measured: norms, factors,
// bounds and the measured gap.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "posattn/bounds/bound_setting.h"
#include "posattn/bounds/count_bound.h"
#include "posattn/bounds/measured_gap.h"
#include "posattn/bounds/norm_bound.h"
#include "posattn/bounds/weight_norms.h"
#include "posattn/model/file/model_file.h"
#include "posattn/training/run_config.h"

namespace posattn::bounds {

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
