#include "posattn/bounds/range_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "posattn/base/error.h"
#include "posattn/bounds/bias_scaling.h"
#include "posattn/evaluation/evaluate.h"
#include "posattn/evaluation/measure.h"
#include "posattn/model/inference.h"

namespace posattn::bounds {
namespace {

// Samples of one length, and what the network makes of them without its biases.
struct ScaledSet {
  Dataset samples;
  std::vector<uint8_t> mask;
  std::vector<float> without_biases;  // f_0(x)
};

class RangeSplitter {
 public:
  explicit RangeSplitter(const RangeRequest& request)
      : model_(*request.model),
        network_(model_.spec, {.path = path_for(model_), .threads = request.threads}) {
    const Parameters<float> without =
        divide_biases(model_.spec, model_.parameters, std::numeric_limits<double>::infinity());
    const EvaluationRequest inside{.model = request.model,
                                   .task = request.task,
                                   .samples = request.samples,
                                   .seed = request.seed,
                                   .threads = request.threads};
    MetricSum error;
    for (Dataset& set : inside.axis->samples(inside, 1).sets) {
      if (!answers_scale(*request.task, set)) {
        throw Error(
            ExitCode::configuration,
            fmt::format("task {}: its answers do not scale with its input", request.task->name()),
            "a task with y(c x) = c y(x), as sums, minima, medians and sorting");
      }
      std::vector<float> outputs = outputs_of(network_, without, set);
      sets_.push_back({std::move(set), {}, std::move(outputs)});
      ScaledSet& added = sets_.back();
      added.mask = loss_mask(*request.task, added.samples.length);
      error += loss_.measure(predictions_of(added.samples, added.without_biases, added.mask));
    }
    split_.without_biases = error.mean();
  }

  void add(double c) {
    const Parameters<float> divided = divide_biases(model_.spec, model_.parameters, c);
    MetricSum error, added;
    for (const ScaledSet& set : sets_) {
      const std::vector<float> outputs = outputs_of(network_, divided, set.samples);
      Predictions predictions = predictions_of(set.samples, outputs, set.mask);
      error += loss_.measure(predictions);
      predictions.targets = set.without_biases;
      added += loss_.measure(predictions);
      check_identity(set.samples, outputs, c);
    }
    const double weights = c * c * split_.without_biases;
    split_.points.push_back({.c = c,
                             .error = c * c * error.mean(),
                             .from_weights = weights,
                             .from_biases = c * c * error.mean() - weights,
                             .bias_output = c * std::sqrt(added.mean())});
  }

  RangeSplit take() { return std::move(split_); }

 private:
  // `divided`: f_(b/c)(x).
  void check_identity(const Dataset& set, const std::vector<float>& divided, double c) {
    Dataset scaled = set;
    for (float& value : scaled.inputs) value = static_cast<float>(c * value);
    const std::vector<float> outputs = outputs_of(network_, model_.parameters, scaled);
    double difference = 0, greatest = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      difference = std::max(difference, std::abs(outputs[i] - c * divided[i]));
      greatest = std::max(greatest, std::abs(static_cast<double>(outputs[i])));
    }
    if (difference > 0) split_.deviation = std::max(split_.deviation, difference / greatest);
  }

  const Model& model_;
  const Metric& loss_ = training_loss();
  Network network_;
  std::vector<ScaledSet> sets_;
  RangeSplit split_;
};

}  // namespace

RangeSplit split_range(const RangeRequest& request) {
  check_shapes(*request.model, *request.task);
  RangeSplitter splitter(request);
  for (const double c : request.scales) splitter.add(c);
  return splitter.take();
}

bool answers_scale(const Task& task, const Dataset& set) {
  if (task.loss() != Loss::squared_error || !set.tokens.empty()) return false;
  if (set.shape.has_pairs()) return false;  // which a task solves with, and nobody can scale apart
  const auto in = static_cast<size_t>(set.shape.input_count());
  const auto out = static_cast<size_t>(set.shape.target_count());
  std::vector<float> scaled(in), answer(out);
  for (const float c : {0.125f, 2.0f, 1024.0f}) {
    for (int64_t sample = 0; sample < set.samples; ++sample) {
      for (size_t i = 0; i < in; ++i) scaled[i] = c * set.inputs.data()[sample * in + i];
      task.solve(set.length, scaled, answer);
      for (size_t i = 0; i < out; ++i) {
        if (answer[i] != c * set.targets.data()[sample * out + i]) return false;
      }
    }
  }
  return true;
}

}  // namespace posattn::bounds
