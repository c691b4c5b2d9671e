#include "posattn/experiments/recorded_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/experiments/experiment.h"

namespace posattn {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t largest_file = 256 << 20;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// A number as JSON can hold it.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number_from(const Json& json) { return json.is_null() ? not_a_number : json.get<double>(); }

Json differing_settings(const std::string& configuration, const std::string& key) {
  const Json all = Json::parse(configuration, nullptr, false);
  if (!all.is_object()) {
    throw Error(ExitCode::data, fmt::format("the settings of run '{}' cannot be read", key),
                "a JSON object");
  }
  const Json defaults = Json::parse(to_json(RunConfig{}));
  Json differing = Json::object();
  for (const auto& [name, value] : all.items()) {
    if (!defaults.contains(name) || defaults[name] != value) differing[name] = value;
  }
  return differing;
}

RunConfig config_from(const Json& settings) {
  RunConfig config;
  for (const auto& [key, value] : settings.items()) {
    set_field(config, key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return config;
}

RunResult result_from(const Json& line) {
  RunResult result;
  result.key = line.at("key").get<std::string>();
  const RunConfig config = config_from(line.at("settings"));
  if (run_key(config) != result.key) {
    throw Error(ExitCode::data, fmt::format("run '{}' with other settings", result.key),
                run_key(config));
  }
  result.configuration = to_json(config);
  result.status = run_status_from(line.at("status").get<std::string>());
  result.message = line.value("message", "");
  result.epochs = line.at("epochs").get<int64_t>();
  result.steps = line.at("steps").get<int64_t>();
  result.seconds = line.at("seconds").get<double>();
  result.device = line.at("device").get<std::string>();
  result.version = line.at("version").get<std::string>();
  result.commit = line.at("commit").get<std::string>();
  result.ended = line.at("ended").get<std::string>();
  result.train_loss = number_from(line.at("train_loss"));
  if (!line.at("validation_loss").is_null()) {
    result.validation_loss = line.at("validation_loss").get<double>();
  }
  for (const Json& test : line.at("tests")) {
    ScaleResult scale;
    scale.c = test.at("c").get<double>();
    scale.mse = number_from(test.at("mse"));
    scale.mse_over_c2 = scale.mse / (scale.c * scale.c);
    scale.accuracy = number_from(test.at("accuracy"));
    result.tests.push_back(scale);
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

bool has_database(const std::filesystem::path& folder) {
  std::error_code none;
  return std::filesystem::file_size(folder / "results.db", none) > 0 && !none;
}

// Beside its place first: a database with some of the runs would pass for one with all.
void make_database(const std::filesystem::path& folder) {
  const std::filesystem::path aside = folder / "results.db.new";
  std::filesystem::remove_all(aside);
  {
    ResultsDatabase database(aside, ResultsDatabase::Access::write);
    import_recorded_runs(folder, database);
  }
  std::filesystem::rename(aside / "results.db", folder / "results.db");
  std::filesystem::remove_all(aside);
}

}  // namespace

std::string to_json_line(const RunResult& result) {
  Json tests = Json::array();
  for (const ScaleResult& test : result.tests) {
    tests.push_back(
        {{"c", test.c}, {"mse", number(test.mse)}, {"accuracy", number(test.accuracy)}});
  }
  Json line = {
      {"key", result.key},
      {"settings", differing_settings(result.configuration, result.key)},
      {"status", to_string(result.status)},
      {"epochs", result.epochs},
      {"steps", result.steps},
      {"seconds", result.seconds},
      {"device", result.device},
      {"version", result.version},
      {"commit", result.commit},
      {"ended", result.ended},
      {"train_loss", number(result.train_loss)},
      {"validation_loss", result.validation_loss ? number(*result.validation_loss) : Json(nullptr)},
      {"tests", tests}};
  if (!result.message.empty()) line["message"] = result.message;
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<RunResult> run_results_from_text(std::string_view text, const std::string& name) {
  std::vector<RunResult> results;
  int number_of_line = 0;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    start = end + 1;
    ++number_of_line;
    if (line.empty()) continue;
    try {
      results.push_back(result_from(Json::parse(line)));
    } catch (const Error& error) {
      throw Error(ExitCode::data, fmt::format("{}:{}: {}", name, number_of_line, error.problem()),
                  error.expected(), error.hint());
    } catch (const nlohmann::json::exception&) {
      throw Error(ExitCode::data, fmt::format("{}:{} is no recorded run", name, number_of_line),
                  "a line that `posattn reproduce` wrote");
    }
  }
  return results;
}

int64_t import_recorded_runs(const std::filesystem::path& folder, ResultsDatabase& database) {
  int64_t imported = 0;
  for (const std::filesystem::path& file : recorded_files(folder)) {
    const std::string text = read_text_file(file, largest_file);
    for (const RunResult& result : run_results_from_text(text, file.string())) {
      if (database.find(result.key)) continue;
      database.record(result);
      ++imported;
    }
  }
  return imported;
}

bool has_results(const std::filesystem::path& folder) {
  return has_database(folder) || !recorded_files(folder).empty();
}

ResultsDatabase open_results(const std::filesystem::path& folder) {
  if (!has_database(folder) && !recorded_files(folder).empty()) {
    const FolderLock lock(folder);
    if (!has_database(folder)) make_database(folder);  // nobody was faster
  }
  return ResultsDatabase(folder, ResultsDatabase::Access::read);
}

}  // namespace posattn
