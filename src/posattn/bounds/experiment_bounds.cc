#include "posattn/bounds/experiment_bounds.h"

#include <fmt/format.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/bounds/network_norms.h"

namespace posattn::bounds {

ExperimentBounds experiment_bounds(const Experiment& experiment,
                                   const std::filesystem::path& results,
                                   const ReportRequest& request) {
  if (experiment.axis.is_tested()) {
    throw Error(ExitCode::configuration,
                fmt::format("{} tests each run along {}", experiment.name, experiment.axis.name()),
                "an experiment whose axis is a setting of training, as samples, epochs or depth",
                "posattn bound --experiment sample-count");
  }
  ExperimentBounds found;
  for (const ExperimentRun& run : runs_of(experiment)) {
    const std::filesystem::path folder = results / "runs" / run.key;
    std::error_code ignored;
    if (!std::filesystem::exists(folder / "model.safetensors", ignored)) {
      ++found.missing;
      continue;
    }
    ReportRequest of_run = request;
    of_run.name = run.key;
    of_run.run = run.config;
    found.runs.push_back({run, bound_report(load_model(folder / "model.safetensors"), of_run)});
  }
  if (found.runs.empty()) {
    throw Error(ExitCode::data,
                fmt::format("no trained models of {} in '{}'", experiment.output_name,
                            (results / "runs").string()),
                "run folders with weights; recorded results have losses alone",
                "posattn reproduce trains them, with the same experiment and --results");
  }
  return found;
}

std::string to_csv(const ExperimentBounds& bounds) {
  std::string text =
      "task,line,seed,x,samples,training_loss,fresh_loss,gap,gap_error,log10_by_norms,"
      "log10_by_count,risk\n";
  for (const RunBounds& bound : bounds.runs) {
    const BoundReport& report = bound.report;
    text += fmt::format("{},{},{},{},{:.0f},", bound.run.task, bound.run.line,
                        bound.run.config.seed, *bound.run.x, report.setting.samples);
    if (report.measured) {
      text +=
          fmt::format("{},{},{},{},", report.measured->training.mean, report.measured->fresh.mean,
                      report.measured->gap(), report.measured->standard_error());
    } else {
      text += ",,,,";
    }
    text += fmt::format("{},{},{}\n", to_log10(report.by_norms.log_gap),
                        std::log10(report.by_count.gap),
                        report.small_loss ? fmt::format("{}", *report.small_loss) : "");
  }
  return text;
}

}  // namespace posattn::bounds
