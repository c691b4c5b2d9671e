// For tests: what a run left in its folder.
#pragma once

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "posattn/base/file.h"

namespace posattn {

inline std::string text_of(const std::filesystem::path& file) {
  return read_text_file(file, 1 << 24);
}

// Metrics without their times, which differ from run to run.
inline std::vector<std::string> metrics_of(const std::filesystem::path& run) {
  std::istringstream stream(text_of(run / "metrics.jsonl"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line.substr(0, line.find(",\"seconds\"")));
  }
  return lines;
}

}  // namespace posattn
