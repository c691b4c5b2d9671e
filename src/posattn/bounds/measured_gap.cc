#include "posattn/bounds/measured_gap.h"

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/inference.h"
#include "posattn/training/run_parts.h"

namespace posattn::bounds {

ClippedLoss clipped_loss(const Model& model, const Dataset& data, double clip, int threads) {
  Inference inference(model, threads);
  const std::vector<float> outputs = inference.run(
      {.inputs = data.inputs, .samples = data.samples, .real_nodes = data.shape.real_nodes});
  const size_t nodes = static_cast<size_t>(data.shape.real_nodes);
  double sum = 0, squares = 0;
  for (size_t first = 0; first < outputs.size(); first += nodes) {
    double loss = 0;
    for (size_t k = first; k < first + nodes; ++k) {
      const double error = double{outputs[k]} - double{data.targets[k]};
      loss += error * error < clip * clip ? error * error : clip * clip;  // NaN counts as b^2
    }
    loss /= static_cast<double>(nodes);
    sum += loss;
    squares += loss * loss;
  }
  const double count = static_cast<double>(data.samples), mean = sum / count;
  return {.mean = mean,
          .standard_error = std::sqrt(std::max(0.0, squares / count - mean * mean) / count),
          .samples = data.samples};
}

double MeasuredGap::standard_error() const {
  return std::hypot(training.standard_error, fresh.standard_error);
}

MeasuredGap measure_gap(const Model& model, const RunConfig& config, double clip,
                        int64_t fresh_samples, int threads) {
  if (config.fresh || config.variable_length) {
    throw Error(ExitCode::configuration,
                config.fresh ? "this run had new training samples every epoch"
                             : "this run had training samples of several lengths",
                "a run with one training set", "train with --samples m and without --fresh");
  }
  const std::vector<Dataset> training = training_data(config, 1, threads);
  return {
      .training = clipped_loss(model, training.front(), clip, threads),
      .fresh = clipped_loss(model, fresh_samples_of(model, fresh_samples, threads), clip, threads)};
}

Dataset fresh_samples_of(const Model& model, int64_t samples, int threads) {
  return make_dataset({.task = &task_of(model.origin, "the model"),
                       .length = model.origin.length,
                       .samples = samples,
                       .range = training_range(model.origin.range, model.origin.integers),
                       .purpose = Purpose::evaluation_data,
                       .threads = threads});
}

}  // namespace posattn::bounds
