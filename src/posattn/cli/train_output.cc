#include "posattn/cli/train_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"
#include "posattn/evaluation/metrics/metric.h"
#include "posattn/evaluation/summary.h"

namespace posattn {
namespace {

using Json = nlohmann::ordered_json;

struct Measure {
  std::string name;  // "train loss", "c = 3"
  std::vector<double> values;
};

struct Architecture {
  std::string name;
  std::vector<Measure> measures;  // train and validation loss, then one per test scale
};

void add_value(Architecture& architecture, const std::string& name, double value) {
  auto measure = std::find_if(architecture.measures.begin(), architecture.measures.end(),
                              [&](const Measure& known) { return known.name == name; });
  if (measure == architecture.measures.end()) {
    measure = architecture.measures.insert(measure, Measure{name, {}});
  }
  measure->values.push_back(value);
}

// Final numbers by architecture, of the runs that finished; the others are named in the error that
// ends the program, and the column "runs" counts the runs of a number.
std::vector<Architecture> gather(const std::vector<RunOutcome>& outcomes) {
  std::vector<Architecture> architectures;
  for (const RunOutcome& outcome : outcomes) {
    if (outcome.status != RunStatus::done || !outcome.last) continue;
    const std::string& name = outcome.config.architecture;
    auto found = std::find_if(architectures.begin(), architectures.end(),
                              [&](const Architecture& known) { return known.name == name; });
    if (found == architectures.end()) found = architectures.insert(found, Architecture{name, {}});
    add_value(*found, "train loss", outcome.last->train_loss);
    if (outcome.last->validation_loss) {
      add_value(*found, "validation loss", *outcome.last->validation_loss);
    }
    for (const Measurement& test : outcome.last->tests) {
      const Metric* metric = known_metric(test.metric);
      if (metric == nullptr || !(metric->is_loss || metric->of_answers)) continue;
      add_value(*found, fmt::format("test {}, {} = {}", metric->heading, test.axis, test.x),
                test.value);
    }
  }
  return architectures;
}

Json spread_json(const std::vector<double>& values) {
  const Spread spread = spread_of(values);
  return {{"runs", spread.count},
          {"median", spread.median},
          {"min", spread.minimum},
          {"max", spread.maximum}};
}

}  // namespace

std::string outcome_table(const std::vector<RunOutcome>& outcomes) {
  const std::vector<Architecture> architectures = gather(outcomes);
  if (architectures.empty()) return "";
  TextTable table({"architecture", "", "runs", "median", "min", "max"}, 2);
  for (const Architecture& architecture : architectures) {
    std::string name = architecture.name;
    for (const Measure& measure : architecture.measures) {
      const Spread spread = spread_of(measure.values);
      table.add_row({name, measure.name, std::to_string(spread.count), short_number(spread.median),
                     short_number(spread.minimum), short_number(spread.maximum)});
      name.clear();
    }
  }
  return table.to_string();
}

std::string outcome_json(const std::filesystem::path& out,
                         const std::vector<RunOutcome>& outcomes) {
  Json runs = Json::array();
  for (const RunOutcome& outcome : outcomes) {
    runs.push_back({{"folder", outcome.folder.string()},
                    {"task", outcome.config.task},
                    {"architecture", outcome.config.architecture},
                    {"seed", outcome.config.seed},
                    {"status", to_string(outcome.status)},
                    {"message", outcome.message},
                    {"epoch", outcome.epoch},
                    {"last", outcome.last ? Json::parse(to_json(*outcome.last)) : Json(nullptr)}});
  }
  Json summary = Json::array();
  for (const Architecture& architecture : gather(outcomes)) {
    Json measures = Json::object();
    for (const Measure& measure : architecture.measures) {
      measures[measure.name] = spread_json(measure.values);
    }
    summary.push_back({{"architecture", architecture.name}, {"measures", measures}});
  }
  const Json document = {{"out", out.string()}, {"runs", runs}, {"summary", summary}};
  return json_text(document);
}

}  // namespace posattn
