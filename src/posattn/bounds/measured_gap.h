// The measured gap: the clipped loss, which the bounds are about, over a run's own training set and
// over fresh samples of the same distribution.
#pragma once

#include <cmath>
#include <cstdint>

#include "posattn/model/model_file.h"
#include "posattn/tasks/dataset.h"
#include "posattn/training/run_config.h"

namespace posattn::bounds {

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
  // Whether it is less than twice its standard error, so that it may be nothing.
  bool within_error() const { return std::abs(gap()) < 2 * standard_error(); }
};

// Throws Error(configuration) for a run without one training set of its own (fresh samples every
// epoch, several lengths).
MeasuredGap measure_gap(const Model& model, const RunConfig& config, double clip,
                        int64_t fresh_samples, int threads);

// Fresh samples like those the model was trained on; its task must be known.
Dataset fresh_samples_of(const Model& model, int64_t samples, int threads);

}  // namespace posattn::bounds
