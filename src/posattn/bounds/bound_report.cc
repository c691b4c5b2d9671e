#include "posattn/bounds/bound_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/bounds/crossing.h"
#include "posattn/model/inference.h"
#include "posattn/training/run.h"

namespace posattn::bounds {
namespace {

constexpr int64_t jacobian_samples = 64, most_fresh_samples = 10'000'000;

BoundSetting setting_of(const Model& model, const ReportRequest& request) {
  if (!request.samples && !request.run) {
    throw Error(ExitCode::usage, fmt::format("{} does not say how many samples", request.name),
                "--samples m, or a run folder, which has its own");
  }
  const int64_t samples = request.samples ? *request.samples : request.run->samples;
  const BoundSetting setting{.samples = static_cast<double>(samples),
                             .range = request.range.value_or(model.origin.range),
                             .clip = request.clip,
                             .delta = request.delta};
  check(setting);
  if (!model.origin.task.empty() && setting.range < model.origin.range) {
    throw Error(ExitCode::usage, fmt::format("--range {}", setting.range),
                fmt::format("{} or more: the model's inputs reach so far", model.origin.range));
  }
  return setting;
}

void check_request(const ReportRequest& request) {
  if (!(request.query_key_scale > 0) || !std::isfinite(request.query_key_scale)) {
    throw Error(ExitCode::usage, fmt::format("--query-key-scale {}", request.query_key_scale),
                "a number above 0");
  }
  if (request.fresh_samples < 1 || request.fresh_samples > most_fresh_samples) {
    throw Error(ExitCode::usage, fmt::format("--fresh-samples {}", request.fresh_samples),
                fmt::format("1 to {}", most_fresh_samples));
  }
}

std::vector<double> inputs_to_look_at(const Model& model) {
  if (model.origin.task.empty()) return {};
  const Dataset data = fresh_samples_of(model, jacobian_samples, 1);
  return {data.inputs.begin(), data.inputs.end()};
}

using BoundJson = nlohmann::ordered_json;

BoundJson norms_json(const MatrixNorms& norms) {
  return {{"spectral", norms.spectral}, {"two_one", norms.two_one}, {"frobenius", norms.frobenius}};
}

BoundJson weights_json(const BoundReport& report) {
  BoundJson layers = BoundJson::array();
  for (const LayerWeightNorms& layer : report.weights) {
    BoundJson object;
    for (const NamedNorms& matrix : layer.matrices) {
      object[matrix.name] = norms_json(matrix.norms);
    }
    object["mlp_lipschitz"] = layer.mlp_lipschitz;
    object["mlp_jacobian"] = layer.mlp_jacobian ? BoundJson(*layer.mlp_jacobian) : BoundJson();
    layers.push_back(std::move(object));
  }
  return layers;
}

std::vector<double> all_log10(std::vector<double> logs) {
  for (double& log : logs) log = to_log10(log);
  return logs;
}

BoundJson factors_json(const BoundReport& report) {
  const Propagation& travel = report.by_norms.propagation;
  BoundJson layers = BoundJson::array(), matrices = BoundJson::array();
  for (const LayerNorms& layer : report.norms.layers) {
    layers.push_back({{"maps", all_log10(layer.maps)},
                      {"offset", to_log10(layer.offset)},
                      {"two_one", to_log10(layer.rows)},
                      {"joined", to_log10(layer.joined)}});
    if (report.norms.positional) continue;
    layers.back().update({{"scores", all_log10(layer.scores)},
                          {"score_offsets", all_log10(layer.score_offsets)},
                          {"scores_frobenius", all_log10(layer.scores_frobenius)},
                          {"scores_joined", all_log10(layer.scores_joined)}});
  }
  for (const CoveredMatrix& matrix : report.by_norms.matrices) {
    matrices.push_back({{"layer", matrix.layer},
                        {"matrix", matrix.name},
                        {"P", to_log10(matrix.log_sensitivity)},
                        {"C", to_log10(matrix.log_size)}});
  }
  return {{"layers", layers},
          {"output", to_log10(report.norms.output)},
          {"output_joined", to_log10(report.norms.output_joined)},
          {"B", all_log10(travel.state)},
          {"Lambda", all_log10(travel.amplification)},
          {"P", all_log10(travel.sensitivity)},
          {"matrices", matrices}};
}

BoundJson measured_json(const BoundReport& report) {
  if (!report.measured) return {};
  const MeasuredGap& found = *report.measured;
  return {{"training_loss", found.training.mean},
          {"training_samples", found.training.samples},
          {"fresh_loss", found.fresh.mean},
          {"fresh_samples", found.fresh.samples},
          {"gap", found.gap()},
          {"standard_error", found.standard_error()},
          {"within_error", found.within_error()}};
}

}  // namespace

BoundReport bound_report(const Model& model, const ReportRequest& request) {
  check_request(request);
  if (model.origin.variable_length) {
    throw Error(ExitCode::configuration, request.name + " was trained on several lengths",
                "a model of one length: its samples are independent and alike");
  }
  const Parameters<double> parameters = to_double(model.parameters);
  const CollapsedNetwork network = collapse(model.spec, parameters, request.name);
  const BoundSetting setting = setting_of(model, request);
  BoundReport report{
      .name = request.name,
      .spec = model.spec,
      .origin = model.origin,
      .run = request.run,
      .setting = setting,
      .weights = weight_norms(model.spec, parameters, inputs_to_look_at(model)),
      .norms = with_scaled_queries_and_keys(norms_of(network), std::log(request.query_key_scale)),
      .by_norms = {},
      .by_count = {},
      .needed = {},
      .measured = {},
      .small_loss = {}};
  report.by_norms = norm_bound(report.norms, setting);
  report.by_count = count_bound(report.norms, setting);
  if (request.samples_for) {
    report.needed = samples_needed(report.norms, setting, *request.samples_for);
  }
  if (!request.run || request.query_key_scale != 1) return report;
  report.measured =
      measure_gap(model, *request.run, setting.clip, request.fresh_samples, request.threads);
  if (setting.samples == static_cast<double>(request.run->samples)) {
    report.small_loss = small_loss_bound(report.norms, setting, report.measured->training.mean);
  }
  return report;
}

std::optional<RatioToGap> ratio_to_gap(const BoundReport& report, double log_bound) {
  if (!report.measured) return {};
  const double gap = std::abs(report.measured->gap()), error = report.measured->standard_error();
  const bool at_least = report.measured->within_error();
  const double compared = at_least ? gap + 2 * error : gap;
  if (!(compared > 0)) return {};
  return RatioToGap{.log = log_bound - std::log(compared), .at_least = at_least};
}

// Reports and crossings as JSON.

std::string to_json(const BoundReport& report) {
  const double log_clip = 2 * std::log(report.setting.clip);
  const double count = std::log(report.by_count.gap);
  const auto ratio = [&](double log) {
    const std::optional<RatioToGap> found = ratio_to_gap(report, log);
    return found ? BoundJson(to_log10(found->log)) : BoundJson();
  };
  BoundJson document = {
      {"model", report.name},
      {"task", report.origin.task},
      {"architecture", preset_name(report.spec)},
      {"depth", report.spec.depth},
      {"width", report.spec.width},
      {"samples", static_cast<int64_t>(report.setting.samples)},
      {"range", report.setting.range},
      {"clip", report.setting.clip},
      {"delta", report.setting.delta},
      {"weights", weights_json(report)},
      {"log10_factors", factors_json(report)},
      {"by_norms",
       {{"kind", report.norms.positional ? "a" : "b"},
        {"log10", to_log10(report.by_norms.log_gap)},
        {"log10_vacuous", to_log10(report.by_norms.log_gap - log_clip)},
        {"log10_over_gap", ratio(report.by_norms.log_gap)},
        {"log10_average", to_log10(report.by_norms.log_average)},
        {"log10_confidence", to_log10(report.by_norms.log_confidence)},
        {"links", report.by_norms.links},
        {"grid_nats", report.by_norms.grid_cost},
        {"log10_entropy",
         {{"matrices", to_log10(report.by_norms.log_matrices)},
          {"rows", to_log10(report.by_norms.log_profiles)},
          {"attention", to_log10(report.by_norms.log_attention)}}}}},
      {"by_count",
       {{"log10", to_log10(count)},
        {"log10_vacuous", to_log10(count - log_clip)},
        {"log10_over_gap", ratio(count)},
        {"parameters", report.by_count.parameters},
        {"entropy_nats", report.by_count.entropy},
        {"radius", report.by_count.radius},
        {"grid_nats", report.by_count.grid_cost},
        {"risk", report.small_loss ? BoundJson(*report.small_loss) : BoundJson()}}},
      {"measured", measured_json(report)}};
  if (report.needed) {
    document["samples_for"] = {{"gap", report.needed->gap},
                               {"log10_by_norms", to_log10(report.needed->log_by_norms)},
                               {"log10_by_count", to_log10(report.needed->log_by_count)}};
  }
  return document.dump();
}

std::string to_json(const Crossing& crossing) {
  BoundJson positional = BoundJson::array(), standard = BoundJson::array(),
            points = BoundJson::array();
  for (const PositionalLevel& level : crossing.positional) {
    positional.push_back({{"depth", level.depth}, {"log10_bound", to_log10(level.log_bound)}});
  }
  for (const StandardCurve& curve : crossing.standard) {
    standard.push_back({{"hops", curve.hops},
                        {"depth", curve.depth},
                        {"log10_norms", all_log10(curve.log_norms)},
                        {"log10_bounds", all_log10(curve.log_bounds)}});
  }
  for (const CrossingPoint& point : crossing.points) {
    points.push_back(
        {{"hops", point.hops},
         {"standard_depth", point.standard_depth},
         {"positional_depth", point.positional_depth},
         {"log10_norm", point.log_norm ? BoundJson(to_log10(*point.log_norm)) : BoundJson()}});
  }
  const BoundJson document = {{"log10_initial_norm", to_log10(crossing.log_initial_norm)},
                              {"positional", positional},
                              {"standard", standard},
                              {"crossings", points}};
  return document.dump();
}

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
