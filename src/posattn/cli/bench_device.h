// posattn bench --device cuda
#pragma once

#include <nlohmann/json.hpp>

#include "posattn/cli/terminal.h"
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
std::string four_digits_text(const Json& value);

// {"device_steps": [...], "ceilings": ..., "device": ..., "machine": ...}
Json measure_device_steps(const DeviceBenchOptions& options);
std::string device_steps_text(const Json& result);

Json measure_long(const std::vector<int>& lengths, int threads, double seconds);
std::string long_figure(const Json& rows);
Json measure_streams(const std::vector<int>& windows, double seconds);

}  // namespace posattn
