#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "posattn/cli/compare_output.h"
#include "posattn/cli/text_table.h"
#include "posattn/report/page/page_parts.h"

namespace posattn {
namespace {

// "5000 (10 runs)", "1 of 6 runs [1 failed: disk full]"
std::string missing_text(const MissingRuns& place) {
  const std::string count = place.missing == place.runs
                                ? plural(place.runs, "run")
                                : fmt::format("{} of {} runs", place.missing, place.runs);
  std::string text = place.x ? fmt::format("{} ({})", *place.x, count) : count;
  if (place.failed > 0) text += fmt::format(" [{} failed: {}]", place.failed, place.failure);
  return text;
}

// A line for each task and line: "sort, standard: samples = 5000 (10 runs), 50000 (7 of 10 runs)".
std::string missing_list(const ComparedExperiment& compared) {
  const ExperimentAxis& axis = compared.experiment.axis;
  std::vector<std::pair<std::string, std::vector<std::string>>> lines;
  for (const MissingRuns& place : compared.missing) {
    const std::string name = place.task + ", " + place.line;
    auto at = std::ranges::find(lines, name, [](const auto& line) { return line.first; });
    if (at == lines.end()) at = lines.insert(at, {name, {}});
    at->second.push_back(missing_text(place));
  }
  std::string list;
  for (const auto& [name, places] : lines) {
    list += "  " +
            wrapped(fmt::format("{}: {}{}", name, axis.is_tested() ? "" : axis.name() + " = ",
                                fmt::join(places, ", ")),
                    page_columns - 2, 4) +
            "\n";
  }
  return list;
}

}  // namespace

std::string missing_part(const ComparedExperiment& compared) {
  std::string text;
  if (!compared.missing.empty()) {
    int64_t missing = 0;
    for (const MissingRuns& place : compared.missing) missing += place.missing;
    text += fmt::format("\n{} of {} runs are missing in {}:\n", missing,
                        runs_of(compared.experiment).size(), compared.results);
    text += missing_list(compared);
    text += fmt::format("To train them: {}\n", compared.reproduce);
  }
  if (!compared.other_precision.empty()) {
    text += fmt::format("\nThere are runs of another precision: {}\n", compared.other_precision);
  }
  return text;
}

}  // namespace posattn
