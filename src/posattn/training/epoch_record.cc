// One line of metrics.jsonl.
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/strict_json.h"
#include "posattn/training/run.h"

namespace posattn {

using Json = nlohmann::ordered_json;

namespace {

// JSON has no NaN: such a number is written as null.
double number(const nlohmann::json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

}  // namespace

std::string to_json(const EpochRecord& record) {
  Json line = {{"epoch", record.epoch}, {"step", record.step}, {"train_loss", record.train_loss}};
  if (record.validation_loss) line["validation_loss"] = *record.validation_loss;
  if (!record.tests.empty()) {
    line["tests"] = Json::array();
    for (const ScaleResult& test : record.tests) {
      line["tests"].push_back({{"c", test.c},
                               {"mse", test.mse},
                               {"mse_over_c2", test.mse_over_c2},
                               {"accuracy", test.accuracy}});
    }
  }
  line["lr"] = record.lr;
  line["seconds"] = record.seconds;
  return line.dump();
}

EpochRecord epoch_record_from_json(std::string_view line) {
  const nlohmann::json json = parse_strict_json(line, "metrics line");
  try {
    EpochRecord record;
    record.epoch = json.at("epoch").get<int64_t>();
    record.step = json.at("step").get<int64_t>();
    record.train_loss = number(json.at("train_loss"));
    record.lr = number(json.at("lr"));
    record.seconds = number(json.at("seconds"));
    if (json.contains("validation_loss")) record.validation_loss = number(json["validation_loss"]);
    for (const auto& test : json.value("tests", nlohmann::json::array())) {
      ScaleResult result;
      result.c = number(test.at("c"));
      result.mse = number(test.at("mse"));
      result.mse_over_c2 = number(test.at("mse_over_c2"));
      result.accuracy = number(test.at("accuracy"));
      record.tests.push_back(result);
    }
    return record;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ExitCode::data, std::string("bad metrics line: ") + error.what());
  }
}

}  // namespace posattn
