#include "posattn/cli/gap_output.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"
#include "posattn/evaluation/summary.h"
#include "posattn/report/page/page_parts.h"

namespace posattn {
namespace {

using bounds::Compared;
using bounds::GapMeasure;
using bounds::GapRun;
using bounds::RankCorrelation;

constexpr std::pair<Compared, const char*> comparisons[] = {
    {Compared::all, "all"},
    {Compared::same_architecture, "same_architecture"},
    {Compared::same_architecture_and_samples, "same_architecture_and_samples"}};

// Medians over the runs of one architecture and number of samples.
std::string gap_table(const std::vector<GapRun>& runs) {
  std::map<std::pair<std::string, int64_t>, std::vector<const GapRun*>> alike;
  for (const GapRun& run : runs) alike[{run.architecture, run.samples}].push_back(&run);
  TextTable table({"architecture", "samples", "runs", "training loss", "fresh loss", "gap"});
  for (const auto& [key, group] : alike) {
    const std::vector<const GapRun*>& members = group;
    const auto median = [&](auto get) {
      std::vector<double> values;
      values.reserve(members.size());
      for (const GapRun* run : members) values.push_back(get(run->measured));
      return short_number(spread_of(values).median);
    };
    table.add_row({key.first, std::to_string(key.second), std::to_string(members.size()),
                   median([](const bounds::MeasuredGap& m) { return m.training.mean; }),
                   median([](const bounds::MeasuredGap& m) { return m.fresh.mean; }),
                   median([](const bounds::MeasuredGap& m) { return m.gap(); })});
  }
  return table.to_string();
}

std::string correlation_cell(const RankCorrelation& found) {
  if (std::isnan(found.tau)) return "-";
  if (std::isnan(found.low))
    return fmt::format("{:+.2f}", found.tau);  // too few runs to draw again
  return fmt::format("{:+.2f} [{:+.2f}, {:+.2f}]", found.tau, found.low, found.high);
}

}  // namespace

std::string gap_text(const std::vector<GapRun>& runs, const std::vector<GapMeasure>& measures) {
  TextTable table({"Kendall's tau with the gap", "all pairs", "one architecture", "and samples"});
  for (size_t i = 0; i < measures.size(); ++i) {
    std::vector<std::string> row = {measures[i].words};
    for (const auto& [compared, name] : comparisons) {
      row.push_back(correlation_cell(gap_correlation(runs, i, compared)));
    }
    table.add_row(row);
  }
  return fmt::format("{}, medians\n{}\n{}", plural(runs.size(), "run"), gap_table(runs),
                     table.to_string());
}

std::string gap_json(const std::vector<GapRun>& runs, const std::vector<GapMeasure>& measures) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array(), correlations = Json::object();
  for (const GapRun& run : runs) {
    Json entry = {{"run", run.name},
                  {"architecture", run.architecture},
                  {"samples", run.samples},
                  {"training_loss", run.measured.training.mean},
                  {"fresh_loss", run.measured.fresh.mean},
                  {"gap", run.measured.gap()}};
    for (size_t i = 0; i < measures.size(); ++i)
      entry["measures"][measures[i].name] = run.values[i];
    list.push_back(std::move(entry));
  }
  for (size_t i = 0; i < measures.size(); ++i) {
    for (const auto& [compared, name] : comparisons) {
      const RankCorrelation found = gap_correlation(runs, i, compared);
      correlations[measures[i].name][name] = {
          {"tau", found.tau}, {"low", found.low}, {"high", found.high}};
    }
  }
  return json_text({{"runs", list}, {"kendall", correlations}});
}

}  // namespace posattn
