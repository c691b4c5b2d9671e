#include "posattn/results/run_checksum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "posattn/base/hash.h"

namespace posattn {
namespace {

// Exact, and the same for what a database cannot tell apart: every NaN is NULL, -0 may become 0.
std::string exact(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value + 0.0);
}

}  // namespace

std::string checksum_of(const RunResult& result) {
  std::vector<std::string> rows;
  for (const Measurement& row : result.measurements) {
    rows.push_back(fmt::format("{} {} {} {} {}", to_string(row.split), row.axis, exact(row.x),
                               row.metric, exact(row.value)));
  }
  std::ranges::sort(rows);
  std::vector<std::string> texts = {result.key,
                                    result.configuration,
                                    std::string(to_string(result.status)),
                                    result.message,
                                    std::to_string(result.epochs),
                                    std::to_string(result.steps),
                                    result.device,
                                    exact(result.seconds),
                                    result.version,
                                    result.commit,
                                    result.ended};
  texts.insert(texts.end(), rows.begin(), rows.end());
  uint64_t hash = hash_of("");
  for (const std::string& text : texts) hash = hash_of_part(text, hash);
  return fmt::format("{:016x}", hash);
}

bool may_lack_checksum(std::string_view version) { return version == "0.1.0"; }

}  // namespace posattn
