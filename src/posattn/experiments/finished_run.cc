#include "posattn/experiments/finished_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/evaluation/metrics/metric.h"
#include "posattn/training/run.h"

namespace posattn {
namespace {

constexpr uint64_t largest_manifest = 16 << 20;

// Which build wrote the manifest; `text` is one.
std::string build_entry(const std::string& text, const char* name) {
  const nlohmann::json json = nlohmann::json::parse(text);
  const nlohmann::json build = json.value("build", nlohmann::json::object());
  return build.is_object() && build.contains(name) && build[name].is_string()
             ? build[name].get<std::string>()
             : "";
}

}  // namespace

RunResult read_result(const std::filesystem::path& run_folder, const std::string& key) {
  return result_of_manifest(read_text_file(run_folder / "manifest.json", largest_manifest),
                            run_folder, key);
}

RunResult result_of_manifest(const std::string& text, const std::filesystem::path& run_folder,
                             const std::string& key) {
  const std::string file = (run_folder / "manifest.json").string();
  const Manifest manifest = manifest_from_json(text, file);
  RunResult result;
  result.key = key;
  result.configuration = manifest.configuration;
  result.status = manifest.status;
  result.message = manifest.message;
  result.epochs = manifest.epoch;
  const auto device = manifest.engine.find("device");
  if (device != manifest.engine.end()) result.device = device->second;
  result.version = build_entry(text, "version");
  result.commit = build_entry(text, "commit");
  result.ended = manifest.ended;
  if (manifest.final_metrics.empty()) {
    if (manifest.status != RunStatus::done) return result;
    throw Error(ExitCode::data, fmt::format("{} has no final metrics", file));
  }
  EpochRecord last = epoch_record_from_json(manifest.final_metrics, file + ": final");
  result.steps = last.step;
  result.seconds = last.seconds;
  if (manifest.status != RunStatus::done) return result;
  const std::string_view loss = training_loss_among(last.tests).name;
  result.measurements = std::move(last.tests);
  std::ranges::stable_sort(result.measurements, {}, &Measurement::x);
  if (!std::isnan(last.train_loss)) {  // it is where the record was lost: no value then
    set_value(result.measurements, {.split = Split::train, .metric = loss}, last.train_loss);
  }
  if (last.validation_loss) {
    set_value(result.measurements, {.split = Split::validation, .metric = loss},
              *last.validation_loss);
  }
  return result;
}

}  // namespace posattn
