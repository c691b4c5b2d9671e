// posattn bench --device cuda
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "posattn/training/run_config.h"

namespace posattn {

struct DeviceBenchOptions {
  std::vector<RunConfig> configs;
  std::vector<std::string> precisions;
  std::vector<int> runs;  // in lockstep, one measurement each
  double seconds = 1;     // of each measurement
};

// Measurements are shown and recorded with four digits.
double four_digits(double value);
std::string four_digits_text(const nlohmann::ordered_json& value);

// {"device_steps": [...], "ceilings": ..., "device": ..., "machine": ...}
nlohmann::ordered_json measure_device_steps(const DeviceBenchOptions& options);
std::string device_steps_text(const nlohmann::ordered_json& result);

}  // namespace posattn
