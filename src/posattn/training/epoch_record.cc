// One line of metrics.jsonl.
#include <nlohmann/json.hpp>

#include "posattn/base/json_fields.h"
#include "posattn/base/json_number.h"
#include "posattn/base/strict_json.h"
#include "posattn/evaluation/measurement_json.h"
#include "posattn/training/run.h"

namespace posattn {

using Json = nlohmann::ordered_json;

std::string to_json(const EpochRecord& record) {
  Json line = {{"epoch", record.epoch},
               {"step", record.step},
               {"train_loss", json_number(record.train_loss)}};
  if (record.validation_loss) line["validation_loss"] = json_number(*record.validation_loss);
  const RowsAsJson written = rows_to_json(record.tests, true);
  if (!written.tests.empty()) line["tests"] = written.tests;
  if (!written.rows.empty()) line["rows"] = written.rows;
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
  record.tests = rows_from_json(json, where);
  return record;
}

}  // namespace posattn
