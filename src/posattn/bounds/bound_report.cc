#include "posattn/bounds/bound_report.h"

#include <fmt/format.h>

#include <cmath>

#include "posattn/base/error.h"

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

void require_one_length(const Model& model, const std::string& name) {
  if (model.origin.variable_length) {
    throw Error(ExitCode::configuration, name + " was trained on several lengths",
                "a model of one length: its samples are independent and alike");
  }
}

std::vector<double> inputs_to_look_at(const Model& model) {
  if (model.origin.task.empty()) return {};
  const Dataset data = fresh_samples_of(model, jacobian_samples, 1);
  return {data.inputs.begin(), data.inputs.end()};
}

}  // namespace

BoundReport bound_report(const Model& model, const ReportRequest& request) {
  check_request(request);
  require_one_length(model, request.name);
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

}  // namespace posattn::bounds
