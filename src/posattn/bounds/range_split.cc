#include "posattn/bounds/range_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/evaluation/evaluate.h"
#include "posattn/evaluation/measure.h"
#include "posattn/model/attention/rows.h"
#include "posattn/model/inference.h"
#include "posattn/model/plan.h"
#include "posattn/model/spec/spec_fields.h"

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

// Every bias but those of queries and keys whose source is positions or has been divided by its
// size.
std::vector<TensorId> scaled_biases(const Plan& plan) {
  std::vector<TensorId> biases = {plan.input.values->bias};
  for (const LayerBlock& layer : plan.layers) {
    const auto& data = layer.attention.data;
    if (data && data->scale == SourceScale::none) biases.push_back(data->query_key.bias);
    biases.push_back(layer.attention.value.bias);
    biases.push_back(layer.attention.output.bias);
    for (const LinearBlock& map : layer.mlp.maps) biases.push_back(map.bias);
  }
  biases.push_back(plan.head.map.bias);
  return biases;
}

// Attention is the same for x and c x where the source is, or where weights do not see a factor of
// the scores.
std::optional<std::string> attention_broken_by(const ModelSpec& layer) {
  if (!layer.reads_data() || layer.source_scale != SourceScale::none) return std::nullopt;
  if (layer.attention == AttentionSource::data_and_positions) {
    return "attention from data and positions, of which one scales";
  }
  const bool hidden =
      row_of(layer.weighting).scale_free && layer.position_scores() == ScoreBias::none;
  if (row_of(layer.scores).degree == 0 || hidden) return std::nullopt;
  return "attention from the data: its scores change with the scale of the input";
}

}  // namespace

RangeSplit split_range(const RangeRequest& request) {
  check_shapes(*request.model, *request.task);
  RangeSplitter splitter(request);
  for (const double c : request.scales) splitter.add(c);
  return splitter.take();
}

bool answers_scale(const Task& task, const Dataset& set) {
  if (task.loss() != Loss::squared_error || !set.tokens.empty()) return false;
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

std::optional<std::string> scaling_broken_by(const ModelSpec& spec) {
  using S = ModelSpec;
  for (int layer = 0; layer < spec.depth; ++layer) {
    if (auto reason = attention_broken_by(spec.of_layer(layer))) return reason;
  }
  if (spec.positions_in_input || spec.positions_added) {
    return "positions in the input, which do not scale with its values";
  }
  if (spec.vocabulary > 0) return "tokens, which have no scale";
  if (spec.normalisation != Normalisation::none) return "LayerNorm, which removes the scale";
  if (spec.activation != Activation::relu) {
    return fmt::format("{}: only ReLUs commute with scaling", to_string(spec.activation));
  }
  if (!knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::data_columns, &S::output_columns,
                  &S::encoding, &S::encoding_size, &S::attention, &S::source_scale, &S::rotation,
                  &S::scores, &S::score_bias, &S::weighting, &S::kinds, &S::loops, &S::route_places,
                  &S::width, &S::heads, &S::depth, &S::mlp_width, &S::mlp_depth, &S::biases,
                  &S::reach, &S::causal, &S::split_heads, &S::join, &S::read_nodes, &S::loss)) {
    return "a setting for which nobody has shown it";
  }
  return std::nullopt;
}

template <class T>
Parameters<T> divide_biases(const ModelSpec& spec, const Parameters<T>& parameters, double c) {
  if (!(c > 0)) {
    throw Error(ExitCode::usage, fmt::format("biases divided by {}", c), "a number above 0");
  }
  if (const auto reason = scaling_broken_by(spec)) {
    throw Error(ExitCode::configuration, "a model with " + *reason,
                "values alone in the input, attention that does not see their scale, ReLUs",
                "as --architecture positional or scale-free");
  }
  Parameters<T> divided = parameters;
  const Plan plan = plan_of(spec);
  for (const TensorId bias : scaled_biases(plan)) {
    for (T& value : divided.slice(plan.tensors.all()[static_cast<size_t>(bias)])) {
      value = static_cast<T>(value / c);
    }
  }
  return divided;
}

template Parameters<float> divide_biases(const ModelSpec&, const Parameters<float>&, double);
template Parameters<double> divide_biases(const ModelSpec&, const Parameters<double>&, double);

}  // namespace posattn::bounds
