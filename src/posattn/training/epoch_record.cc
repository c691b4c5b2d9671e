// One line of metrics.jsonl.
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/json_number.h"
#include "posattn/base/strict_json.h"
#include "posattn/training/run.h"

namespace posattn {

using Json = nlohmann::ordered_json;

std::string to_json(const EpochRecord& record) {
  Json line = {{"epoch", record.epoch},
               {"step", record.step},
               {"train_loss", json_number(record.train_loss)}};
  if (record.validation_loss) line["validation_loss"] = json_number(*record.validation_loss);
  if (!record.tests.empty()) {
    line["tests"] = Json::array();
    for (const ScaleResult& test : record.tests) {
      line["tests"].push_back({{"c", test.c},
                               {"mse", json_number(test.mse)},
                               {"mse_over_c2", json_number(test.mse_over_c2)},
                               {"accuracy", json_number(test.accuracy)}});
    }
  }
  line["lr"] = json_number(record.lr);
  line["seconds"] = record.seconds;
  return line.dump();
}

EpochRecord epoch_record_from_json(std::string_view line) {
  const nlohmann::json json = parse_strict_json(line, "metrics line");
  try {
    EpochRecord record;
    record.epoch = json.at("epoch").get<int64_t>();
    record.step = json.at("step").get<int64_t>();
    record.train_loss = number_from_json(json.at("train_loss"));
    record.lr = number_from_json(json.at("lr"));
    record.seconds = number_from_json(json.at("seconds"));
    if (json.contains("validation_loss"))
      record.validation_loss = number_from_json(json["validation_loss"]);
    for (const auto& test : json.value("tests", nlohmann::json::array())) {
      ScaleResult result;
      result.c = number_from_json(test.at("c"));
      result.mse = number_from_json(test.at("mse"));
      result.mse_over_c2 = number_from_json(test.at("mse_over_c2"));
      result.accuracy = number_from_json(test.at("accuracy"));
      record.tests.push_back(result);
    }
    return record;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ExitCode::data, std::string("bad metrics line: ") + error.what());
  }
}

}  // namespace posattn
