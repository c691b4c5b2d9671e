// posattn bench --device cuda
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace posattn {

struct DeviceBenchOptions {
  std::vector<std::string> architectures, precisions;
  std::vector<int> runs;  // in lockstep, one measurement each
  int length = 8;
  int64_t batch = 1000;
  std::string path;
  double seconds = 1;  // of each measurement
};

// Measurements are shown and recorded with four digits.
double four_digits(double value);
std::string four_digits_text(const nlohmann::ordered_json& value);

// {"device_steps": [...], "ceilings": ..., "device": ..., "machine": ...}
nlohmann::ordered_json measure_device_steps(const DeviceBenchOptions& options);
std::string device_steps_text(const nlohmann::ordered_json& result);

}  // namespace posattn
