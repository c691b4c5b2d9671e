// One line of metrics.jsonl.
#include <nlohmann/json.hpp>

#include "posattn/base/json_fields.h"
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

EpochRecord epoch_record_from_json(std::string_view line, const std::string& where) {
  const nlohmann::json json = parse_strict_json(line, where);
  const JsonFields fields(json, where);
  EpochRecord record;
  record.epoch = fields.integer("epoch");
  record.step = fields.integer("step");
  record.train_loss = fields.number("train_loss");
  record.lr = fields.number("lr");
  record.seconds = fields.number("seconds");
  if (fields.has("validation_loss")) record.validation_loss = fields.number("validation_loss");
  if (!fields.has("tests")) return record;
  for (const nlohmann::json& test : fields.at("tests")) {
    const JsonFields scale(test, where + ": tests");
    ScaleResult result;
    result.c = scale.number("c");
    result.mse = scale.number("mse");
    result.mse_over_c2 = scale.number("mse_over_c2");
    result.accuracy = scale.number("accuracy");
    record.tests.push_back(result);
  }
  return record;
}

}  // namespace posattn
