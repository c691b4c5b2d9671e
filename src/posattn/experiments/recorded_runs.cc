#include "posattn/experiments/recorded_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/hash.h"
#include "posattn/base/json_fields.h"
#include "posattn/base/text.h"
#include "posattn/evaluation/measurement.h"
#include "posattn/evaluation/measurement_json.h"
#include "posattn/evaluation/metrics/metric.h"
#include "posattn/experiments/experiment.h"
#include "posattn/experiments/merge.h"
#include "posattn/experiments/shards.h"
#include "posattn/training/run.h"
#include "posattn/training/run_config_fields.h"

namespace posattn {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t largest_file = 256 << 20;
constexpr const char* checksum_field = "checksum";

Json differing_settings(const std::string& configuration, const std::string& key) {
  const Json all = Json::parse(configuration, nullptr, false);
  if (!all.is_object()) {
    throw Error(ExitCode::data, fmt::format("the settings of run '{}' cannot be read", key),
                "a JSON object");
  }
  const Json defaults = Json::parse(to_json(settings_of_files()));
  Json differing = Json::object();
  for (const auto& [name, value] : all.items()) {
    if (!defaults.contains(name) || defaults[name] != value) differing[name] = value;
  }
  return differing;
}

void expect(bool right, const std::string& problem, const std::string& expected) {
  if (!right) throw Error(ExitCode::data, problem, expected);
}

RunConfig config_from(const nlohmann::json& settings) {
  RunConfig config = settings_of_files();
  for (const auto& [key, value] : settings.items()) {
    expect(value.is_string() || value.is_number() || value.is_boolean(),
           fmt::format("setting '{}'", key), "text, a number, true or false");
    set_field(config, key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return config;
}

// Losses in training and validation, which a line has by name.
constexpr std::pair<Split, const char*> losses[] = {{Split::train, "train_loss"},
                                                    {Split::validation, "validation_loss"}};
constexpr std::string_view loss_metric = "mse";

// The checksum covers the values, however they are spelled and ordered.
std::string checksum_of_line(nlohmann::json line) {
  line.erase(checksum_field);
  return fmt::format("{:016x}", hash_of(line.dump()));
}

// Lines of 0.1.0 and 0.2.0 have none.
void check_checksum(const nlohmann::json& line) {
  const std::string version = line.at("version").get<std::string>();
  if (!line.contains(checksum_field) && (version == "0.1.0" || version == "0.2.0")) return;
  const std::string found = checksum_of_line(line);
  if (line.value(checksum_field, "") == found) return;
  throw Error(ExitCode::data,
              fmt::format("run '{}' was changed after it was recorded",
                          printable(line.at("key").get<std::string>())),
              fmt::format("\"{}\": \"{}\"", checksum_field, found),
              "use a copy of the file from before, or remove the line and reproduce the run");
}

RunResult result_from(const nlohmann::json& line) {
  check_checksum(line);
  RunResult result;
  result.key = line.at("key").get<std::string>();
  const RunConfig config = config_from(line.at("settings"));
  if (run_key(config) != result.key) {
    throw Error(ExitCode::data, fmt::format("run '{}' with other settings", result.key),
                run_key(config));
  }
  result.configuration = to_json(config);
  result.status = run_status_from(line.at("status").get<std::string>());
  expect(has_ended(result.status), fmt::format("status '{}'", to_string(result.status)),
         "done or diverged");
  result.message = line.value("message", "");
  result.epochs = line.at("epochs").get<int64_t>();
  result.steps = line.at("steps").get<int64_t>();
  result.seconds = line.at("seconds").get<double>();
  expect(result.epochs >= 0 && result.steps >= 0 && result.seconds >= 0,
         "negative epochs, steps or seconds", "at least 0");
  result.device = line.at("device").get<std::string>();
  result.version = line.at("version").get<std::string>();
  result.commit = line.at("commit").get<std::string>();
  result.ended = line.at("ended").get<std::string>();
  expect(line.at("tests").is_array(), "no list of tests", "a list");
  result.measurements = rows_from_json(line, "a recorded run");
  for (const auto& [split, name] : losses) {
    const double loss = number_from_json(line.at(name));
    if (std::isnan(loss)) continue;
    set_value(result.measurements, {.split = split, .metric = loss_metric}, loss);
  }
  return result;
}

std::vector<std::filesystem::path> recorded_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::filesystem::path file = entry.path() / "runs.jsonl";
    if (std::filesystem::is_regular_file(file, ignored)) files.push_back(file);
  }
  std::ranges::sort(files);
  return files;
}

// Those of the text that `known` does not know to have ended; only these are read whole.
std::vector<RunResult> unknown_runs(std::string_view text, const std::string& name,
                                    const std::unordered_map<std::string, RunStatus>& known) {
  std::vector<RunResult> results;
  int number_of_line = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number_of_line;
    if (line.empty()) continue;
    try {
      const nlohmann::json parsed = parse_strict_json(line, "a recorded run");
      const auto there = known.find(parsed.at("key").get<std::string>());
      if (there == known.end() || !has_ended(there->second)) results.push_back(result_from(parsed));
    } catch (const Error& error) {
      throw error.as(ExitCode::data,
                     fmt::format("{}:{}: {}", name, number_of_line, error.problem()));
    } catch (const nlohmann::json::exception&) {
      throw Error(ExitCode::data, fmt::format("{}:{} is no recorded run", name, number_of_line),
                  "a line that `posattn reproduce` wrote");
    }
  }
  return results;
}

// Both, in memory.
ResultsDatabase with_results(const ResultsDatabase& stored, const std::vector<RunResult>& newer) {
  ResultsDatabase all;
  all.record(stored.all());
  all.record(newer);
  return all;
}

// Reads folder/*/runs.jsonl and takes each run once.
std::vector<RunResult> unknown_runs(const std::filesystem::path& folder,
                                    std::unordered_map<std::string, RunStatus> known) {
  std::vector<RunResult> results;
  for (const std::filesystem::path& file : recorded_files(folder)) {
    const std::string text = read_text_file(file, largest_file);
    for (RunResult& result : unknown_runs(text, file.string(), known)) {
      known.insert_or_assign(result.key, result.status);
      results.push_back(std::move(result));
    }
  }
  return results;
}

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

std::string to_json_line(const RunResult& result) {
  std::vector<Measurement> others = result.measurements;
  std::erase_if(others, [](const Measurement& row) {
    return row.split != Split::test && row.axis.empty() && row.metric == loss_metric;
  });
  const RowsAsJson written = rows_to_json(others, false);
  const auto loss = [&](Split split) {
    return json_number(find_value(result.measurements, {.split = split, .metric = loss_metric})
                           .value_or(std::numeric_limits<double>::quiet_NaN()));
  };
  Json line = {{"key", result.key},
               {"settings", differing_settings(result.configuration, result.key)},
               {"status", to_string(result.status)},
               {"epochs", result.epochs},
               {"steps", result.steps},
               {"seconds", result.seconds},
               {"device", result.device},
               {"version", result.version},
               {"commit", result.commit},
               {"ended", result.ended},
               {"train_loss", loss(Split::train)},
               {"validation_loss", loss(Split::validation)},
               {"tests", written.tests}};
  if (!written.rows.empty()) line["rows"] = written.rows;
  if (!result.message.empty()) line["message"] = result.message;
  const auto as_text = [&] { return line.dump(-1, ' ', false, Json::error_handler_t::replace); };
  line[checksum_field] = checksum_of_line(nlohmann::json::parse(as_text()));
  return as_text();
}

std::vector<RunResult> run_results_from_text(std::string_view text, const std::string& name) {
  return unknown_runs(text, name, {});
}

int64_t import_recorded_runs(const std::filesystem::path& folder, ResultsDatabase& database) {
  const std::vector<RunResult> results = unknown_runs(folder, database.statuses());
  for (const RunResult& result : results) database.record(result);
  return static_cast<int64_t>(results.size());
}

bool has_results(const std::filesystem::path& folder) {
  return has_database(folder) || !recorded_files(folder).empty() || !shards_in(folder).empty();
}

ResultsDatabase open_results(const std::filesystem::path& folder,
                             const std::function<void(const std::string&)>& notice) {
  ResultsDatabase stored = has_database(folder) || !has_results(folder)
                               ? ResultsDatabase(folder, ResultsDatabase::Access::read)
                               : ResultsDatabase();
  std::vector<RunResult> newer = unknown_runs(folder, stored.statuses());
  if (!newer.empty()) stored = with_results(stored, newer);
  ShardReading shards = read_shards(folder, stored);
  describe(shards.conflicts, shards.problems, notice);
  newer.clear();
  for (ShardRun& run : shards.runs) {
    if (run.is_new) newer.push_back(std::move(run.result));
  }
  return newer.empty() ? std::move(stored) : with_results(stored, newer);
}

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
