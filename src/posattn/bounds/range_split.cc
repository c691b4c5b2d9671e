#include "posattn/bounds/range_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "posattn/base/error.h"
#include "posattn/bounds/bias_scaling.h"
#include "posattn/bounds/scale_law.h"
#include "posattn/evaluation/evaluate.h"
#include "posattn/evaluation/measure.h"
#include "posattn/model/inference.h"

namespace posattn::bounds {
namespace {

constexpr float solved_scales[] = {0.125f, 2.0f, 1024.0f};  // products with them are exact

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
        network_(model_.spec, options(request)),
        inside_{.model = request.model,
                .task = request.task,
                .samples = request.samples,
                .seed = request.seed,
                .threads = request.threads} {
    split_.cooled = scaling_broken_by(model_.spec).has_value();
    // Scores of a cooled model stay finite.
    const Parameters<float> limit =
        at_scale(split_.cooled ? 1e6 : std::numeric_limits<double>::infinity());
    MetricSum error, at_one;
    for (Dataset& set : inside_.axis->samples(inside_, 1).sets) {
      if (!answers_scale(*request.task, set)) {
        throw Error(
            ExitCode::configuration,
            fmt::format("task {}: its answers do not scale with its input", request.task->name()),
            "a task with y(c x) = c y(x), as sums, minima, medians and sorting");
      }
      std::vector<float> outputs = outputs_of(network_, limit, set);
      sets_.push_back({std::move(set), {}, std::move(outputs)});
      ScaledSet& added = sets_.back();
      added.mask = loss_mask(*request.task, added.samples.length);
      error += loss_.measure(predictions_of(added.samples, added.without_biases, added.mask));
      at_one += loss_.measure(predictions_of(
          added.samples, outputs_of(network_, model_.parameters, added.samples), added.mask));
    }
    at_one_ = at_one.mean();
    split_.without_biases = error.mean();
  }

  void add(double c) {
    const Parameters<float> divided = at_scale(c);
    MetricSum error, added, measured;
    for (const ScaledSet& set : sets_) {
      const std::vector<float> outputs = outputs_of(network_, divided, set.samples);
      Predictions predictions = predictions_of(set.samples, outputs, set.mask);
      error += loss_.measure(predictions);
      predictions.targets = set.without_biases;
      added += loss_.measure(predictions);
      measured += check_identity(set, outputs, c);
    }
    const double weights = c * c * split_.without_biases;
    split_.points.push_back({.c = c,
                             .error = c * c * error.mean(),
                             .measured = measured.mean(),
                             .from_weights = weights,
                             .from_biases = c * c * error.mean() - weights,
                             .bias_output = c * std::sqrt(added.mean())});
    add_test(split_.points.back());
  }

  RangeSplit take() { return std::move(split_); }

 private:
  static NetworkOptions options(const RangeRequest& request) {
    return {.path = path_for(*request.model), .threads = request.threads};
  }

  Parameters<float> at_scale(double c) const {
    return split_.cooled ? cooled(model_.spec, model_.parameters, c)
                         : divide_biases(model_.spec, model_.parameters, c);
  }

  // Where the samples of `evaluate` are those of training times c but for what is left out: a pair
  // (a, b) lies inside the training range with probability 1 / c^2, and is then one of c = 1.
  void add_test(RangePoint& point) {
    const ModelOrigin& origin = model_.origin;
    const double c = point.c;
    if (origin.integers || !states_axis(*inside_.task, "c") || (c > 1 && c < 1.001)) return;
    EvaluationRequest request = inside_;
    request.values = {c};
    const MeasuredPlace place{.axis = "c", .x = c, .metric = loss_.name};
    point.tested = find_value(evaluate(request).rows, place).value();
    point.predicted = c > 1 ? (c * c * point.error - at_one_) / (c * c - 1) : point.error;
  }

  // `divided`: f_(b/c)(x). Returns the error on c x.
  MetricSum check_identity(const ScaledSet& of, const std::vector<float>& divided, double c) {
    Dataset scaled = of.samples;
    for (float& value : scaled.inputs) value = static_cast<float>(c * value);
    for (float& value : scaled.targets) value = static_cast<float>(c * value);
    const std::vector<float> outputs = outputs_of(network_, model_.parameters, scaled);
    double difference = 0, greatest = 0;
    for (size_t i = 0; i < outputs.size(); ++i) {
      difference = std::max(difference, std::abs(outputs[i] - c * divided[i]));
      greatest = std::max(greatest, std::abs(static_cast<double>(outputs[i])));
    }
    if (difference > 0) split_.deviation = std::max(split_.deviation, difference / greatest);
    return loss_.measure(predictions_of(scaled, outputs, of.mask));
  }

  const Model& model_;
  const Metric& loss_ = training_loss();
  Network network_;
  const EvaluationRequest inside_;  // the samples of c = 1
  double at_one_ = 0;               // the error on them
  std::vector<ScaledSet> sets_;
  RangeSplit split_;
};

bool are_scaled(std::span<const float> at_c, std::span<const float> at_1, float c) {
  return std::ranges::equal(at_c, at_1, [&](float a, float b) { return a == c * b; });
}

// A task of tokens or pairs does not solve for numbers alone. It draws samples again, by the same
// random numbers from c times the range: nothing but their numbers may change then.
bool drawn_answers_scale(const Task& task, const Dataset& set) {
  DatasetRequest request{.task = &task,
                         .length = set.length,
                         .samples = set.samples,
                         .range = training_range(1, false)};
  const Dataset at_1 = make_dataset(request);
  return std::ranges::all_of(solved_scales, [&](float c) {
    request.range = training_range(c, false);
    const Dataset at_c = make_dataset(request);
    return std::ranges::equal(at_c.tokens, at_1.tokens) &&
           std::ranges::equal(at_c.pairs, at_1.pairs) &&
           std::ranges::equal(at_c.pair_classes, at_1.pair_classes) &&
           are_scaled(at_c.inputs, at_1.inputs, c) && are_scaled(at_c.targets, at_1.targets, c);
  });
}

}  // namespace

RangeSplit split_range(const RangeRequest& request) {
  check_shapes(*request.model, *request.task);
  RangeSplitter splitter(request);
  for (const double c : request.scales) splitter.add(c);
  return splitter.take();
}

bool answers_scale(const Task& task, const Dataset& set) {
  if (task.loss() != Loss::squared_error) return false;
  if (!states_axis(task, "c")) return false;  // its numbers have no scale, as those of a graph
  if (!set.tokens.empty() || set.shape.has_pairs()) return drawn_answers_scale(task, set);
  const auto in = static_cast<size_t>(set.shape.input_count());
  const auto out = static_cast<size_t>(set.shape.target_count());
  std::vector<float> scaled(in), answer(out);
  for (const float c : solved_scales) {
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
