#include "posattn/experiments/sweep/words.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "posattn/base/strict_json.h"
#include "posattn/base/text.h"
#include "posattn/experiments/experiment.h"

namespace posattn {

using Json = nlohmann::json;

std::string to_json_line(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_json_line(const TrainingOrder& order) {
  Json runs = Json::array();
  for (const RunConfig& run : order.runs) {
    runs.push_back({{"key", run_key(run)}, {"config", to_toml(run)}});
  }
  return to_json_line(Json{{"order", order.number},
                           {"results", order.results.string()},
                           {"command_line", order.command_line},
                           {"runs", runs}});
}

TrainingOrder training_order_from(const Json& order) {
  TrainingOrder result{order.at("order").get<int64_t>(),
                       order.at("results").get<std::string>(),
                       order.at("command_line").get<std::string>(),
                       {}};
  for (const Json& run : order.at("runs")) {
    const auto key = run.at("key").get<std::string>();
    result.runs.push_back(read_config_text(run.at("config").get<std::string>(), key).config);
    if (run_key(result.runs.back()) != key) {
      throw Error(
          ExitCode::data,
          fmt::format("run '{}' has another key here: {}", key, run_key(result.runs.back())),
          "the same on all ranks", "use the same version of the program on all machines");
    }
  }
  return result;
}

std::string to_json_line(const Error& error) {
  return to_json_line(Json{{"error",
                            {{"code", static_cast<int>(error.code())},
                             {"problem", error.problem()},
                             {"expected", error.expected()},
                             {"hint", error.hint()}}}});
}

Error error_from(const Json& error) {
  return Error(static_cast<ExitCode>(error.at("code").get<int>()),
               error.at("problem").get<std::string>(), error.at("expected").get<std::string>(),
               error.at("hint").get<std::string>());
}

Json sweep_words(std::string_view line) {
  Json words = parse_strict_json(line, "a message of a sweep");
  if (words.is_object()) return words;
  throw Error(ExitCode::data, fmt::format("a message of a sweep: '{}'", printable(line)),
              "an object");
}

}  // namespace posattn
