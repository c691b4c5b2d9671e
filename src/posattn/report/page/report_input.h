// What a report shows, as plain data: filled by read_runs from run folders, or by hand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "posattn/evaluation/measurement.h"
#include "posattn/report/svg/attention_svg.h"
#include "posattn/tasks/loss.h"

namespace posattn {

struct LossPoint {
  int64_t epoch = 0;
  double train = 0;
  std::optional<double> validation;
};

struct RunReport {
  std::string architecture;
  std::string execution;  // "cuda, tf32": what differs from other runs in how it was computed
  int64_t seed = 0;
  std::string status;  // "done", "diverged", ...
  double seconds = 0;  // of training
  std::vector<LossPoint> curve;
  std::vector<Measurement> tests;  // after the last epoch
  std::vector<AttentionMaps> attention;
  std::string manifest;    // as JSON, shown as it is
  std::string model = {};  // its file, where it has one
};

struct ReportInput {
  std::string title;
  std::string task;
  int length = 0;
  double range = 2;                 // trained on values in [-range, range]
  bool numbers = true;              // nodes hold numbers alone, no tokens
  Loss loss = Loss::squared_error;  // of training
  std::vector<RunReport> runs;
  std::vector<std::string> commands;       // that make this again
  std::vector<std::string> left_out = {};  // runs that cannot be read, and why, a line for each
  std::string playground = {};  // the name of a page beside this one with its models, or ""
};

}  // namespace posattn
