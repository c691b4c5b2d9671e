#include "posattn/cli/compare_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "posattn/cli/text_table.h"
#include "posattn/report/page/page_parts.h"

namespace posattn {
namespace {

std::string paragraph(const std::string& text) { return wrapped(text, page_columns, 0) + "\n"; }

// Rounds to this many significant digits, but keeps a short whole part complete: 118, never
// 1.2e+02.
std::string digits(double value, int count) {
  if (std::isnan(value)) return "nan";  // never "-nan"
  if (value >= 99.5 && value < 1e5) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}g}", value, count);
}

// It has as many digits as the median next to it, so that the median is inside.
std::string range(double low, double high) {
  return fmt::format("[{}, {}]", digits(low, 3), digits(high, 3));
}

std::string their_name(const ComparedExperiment& compared) {
  return compared.published ? "published" : "theirs";
}

// Nothing for so few runs that the interval would not have the confidence that it claims.
std::optional<Interval> interval_of(const CurvePoint& point) {
  if (static_cast<int64_t>(point.runs.size()) < fewest_for_interval) return {};
  std::vector<double> values;
  for (const auto& [seed, value] : point.runs) values.push_back(value);
  return median_interval(values);
}

const ComparedCurve* find_compared(const Comparison& comparison, const Curve& curve) {
  const auto at = std::find_if(
      comparison.curves.begin(), comparison.curves.end(), [&](const ComparedCurve& other) {
        return other.task == curve.task && other.line == curve.line && other.split == curve.split;
      });
  return at == comparison.curves.end() ? nullptr : &*at;
}

const ComparedPoint* find_compared(const ComparedCurve* curve, std::optional<double> x) {
  if (curve == nullptr) return nullptr;
  const auto at = std::find_if(curve->points.begin(), curve->points.end(),
                               [x](const ComparedPoint& point) { return point.ours.x == x; });
  return at == curve->points.end() ? nullptr : &*at;
}

// These runs were trained less than the published ones, so a point that differs does not contradict
// them.
bool is_reduced(const ComparedExperiment& compared) {
  return compared.published && !compared.experiment.reduction.empty();
}

std::string runs_text(const CurvePoint& point) {
  const auto finished = static_cast<int64_t>(point.runs.size());
  return point.missing == 0 ? std::to_string(finished)
                            : fmt::format("{}/{}", finished, finished + point.missing);
}

struct Exponents {
  Growth ours, theirs;
};

// Nothing where an exponent has no meaning.
std::optional<Exponents> exponents_of(const ComparedExperiment& compared, const Curve& curve) {
  if (!has_growth(compared.experiment) || curve.split != Split::test) return {};
  const std::vector<PointSummary> ours = summarise(compared.experiment, std::vector<Curve>{curve});
  return Exponents{.ours = growth_in_scale(ours, curve.task, curve.line),
                   .theirs = growth_in_scale(compared.theirs, curve.task, curve.line)};
}

std::string curve_table(const ComparedExperiment& compared, const Curve& curve) {
  const ComparedCurve* both = find_compared(compared.comparison, curve);
  std::vector<std::string> header = {compared.experiment.axis.name(), "ours", "95 % interval",
                                     "runs"};
  if (both != nullptr) {
    header.insert(header.end(), {their_name(compared), "[min, max]", "runs", "ratio", "agrees"});
  } else {
    header.emplace_back("[min, max]");
  }
  TextTable table(header, 0);
  for (const CurvePoint& point : curve.points) {
    const PointSummary ours = summarise(compared.experiment, curve, point);
    const std::optional<Interval> interval = interval_of(point);
    std::vector<std::string> row = {
        point.x ? fmt::format("{}", *point.x) : "-", digits(ours.median, 3),
        interval ? range(interval->low, interval->high) : "-", runs_text(point)};
    if (const ComparedPoint* pair = find_compared(both, point.x)) {
      row.insert(row.end(), {digits(pair->theirs.median, 3) + (pair->correction.empty() ? "" : "*"),
                             range(pair->theirs.minimum, pair->theirs.maximum),
                             std::to_string(pair->theirs.runs), digits(pair->ratio, 3),
                             pair->agrees()         ? "yes"
                             : is_reduced(compared) ? "reduced"
                                                    : "no"});
    } else if (both != nullptr) {
      row.insert(row.end(), {"-", "", "", "", "-"});
    } else {
      row.push_back(range(ours.minimum, ours.maximum));
    }
    table.add_row(row);
  }
  return table.to_string();
}

std::string growth_note(const ComparedExperiment& compared, const Curve& curve) {
  const auto exponents = exponents_of(compared, curve);
  if (!exponents || std::isnan(exponents->ours.exponent)) return "";
  std::string note = fmt::format("growth from c = {} to {}: c^{:.2f}", growth_first, growth_last,
                                 exponents->ours.exponent);
  if (!std::isnan(exponents->theirs.exponent)) {
    note += fmt::format(", {} c^{:.2f}", their_name(compared), exponents->theirs.exponent);
  }
  return note;
}

// The runs of the curve. Where x is a test point, each run has every point.
std::string missing_note(const Experiment& experiment, const Curve& curve) {
  if (experiment.is_baseline(curve.line)) return "";
  auto all = static_cast<int64_t>(experiment.seeds.size());
  int64_t there = 0, diverged = 0;
  if (!experiment.axis.is_tested()) {
    all *= static_cast<int64_t>(experiment.axis.values.size());
    for (const CurvePoint& point : curve.points) {
      there += static_cast<int64_t>(point.runs.size());
      diverged += point.diverged;
    }
  } else {
    there = all;
    for (const CurvePoint& point : curve.points) {
      there = std::min(there, static_cast<int64_t>(point.runs.size()));
      diverged = std::max(diverged, point.diverged);
    }
  }
  std::string note;
  if (there < all) note = fmt::format("{} of {} runs are there", there, all);
  if (diverged > 0) {
    note += fmt::format(
        "{}{} of {} runs diverged: counted as {}", there < all ? "; " : "", diverged, there,
        experiment.metric->better == Better::higher ? fmt::format("{} 0", experiment.metric->words)
                                                    : "infinite");
  }
  return note;
}

// What the rule of agreement leaves open where their runs spread widely.
std::string closer_counts(const std::string& whose, int64_t within_factor, int64_t in_quantiles) {
  return fmt::format("{} within a factor of 3 of {} median, {} inside their [q10, q90]",
                     within_factor, whose, in_quantiles);
}

// Below a curve's table: verdict, growth, what is missing, corrections.
std::string curve_notes(const ComparedExperiment& compared, const Curve& curve) {
  std::string summary = growth_note(compared, curve), agreement;
  std::vector<std::string> corrections;
  if (const ComparedCurve* both = find_compared(compared.comparison, curve)) {
    agreement = fmt::format("{} of {} points agree; {}", both->agreeing, both->points.size(),
                            closer_counts(compared.published ? "the published" : "their",
                                          both->within_factor, both->in_quantiles));
    summary = fmt::format("mean log10 ratio {:+.2f}{}{}", both->log10_ratio,
                          summary.empty() ? "" : "; ", summary);
    for (const ComparedPoint& point : both->points) {
      const std::string note = "* " + point.correction;
      const bool is_new =
          std::find(corrections.begin(), corrections.end(), note) == corrections.end();
      if (!point.correction.empty() && is_new) corrections.push_back(note);
    }
  }
  std::string text;
  std::vector<std::string> notes = {agreement, summary, missing_note(compared.experiment, curve)};
  notes.insert(notes.end(), corrections.begin(), corrections.end());
  for (const std::string& note : notes) {
    if (!note.empty()) text += paragraph(note);
  }
  return text;
}

std::string paired_table(const ComparedExperiment& compared, const std::string& task) {
  TextTable table({compared.experiment.axis.name(), "pairs", "ratio of medians", "p"}, 0);
  const PairedPoint* first = nullptr;
  for (const PairedPoint& point : compared.paired) {
    if (point.task != task) continue;
    if (first == nullptr) first = &point;
    table.add_row({point.x ? fmt::format("{}", *point.x) : "-", std::to_string(point.test.pairs),
                   digits(point.median_ratio, 3),
                   std::isnan(point.test.p_value) ? "-" : digits(point.test.p_value, 2)});
  }
  if (first == nullptr) return "";
  return "\n" +
         paragraph(fmt::format("{}: {} against {}, paired by seed (Wilcoxon signed-rank test)",
                               task, first->first, first->second)) +
         table.to_string();
}

std::string verdict(const ComparedExperiment& compared) {
  const Comparison& comparison = compared.comparison;
  std::string text;
  const auto list = [&](const std::string& what, const std::vector<std::string>& names) {
    if (!names.empty()) text += paragraph(fmt::format("{}: {}", what, fmt::join(names, "; ")));
  };
  if (comparison.curves.empty()) {
    text +=
        !compared.published
            ? paragraph(fmt::format("No point in common with {}.", comparison.with))
            : paragraph(fmt::format("No published results of {}. --with DIR compares with "
                                    "another results folder.",
                                    compared.experiment.is_embedded ? "this experiment"
                                                                    : "an experiment of your own"));
  } else {
    list(compared.published ? "No published numbers of" : "Not in " + comparison.with,
         comparison.only_ours);
  }
  list(compared.published ? "Published, but not in " + compared.results
                          : "Not in " + compared.results,
       comparison.only_theirs);
  if (comparison.points > 0) {
    text += paragraph(fmt::format(
        "{} of {} test points agree ({:.0f} %) with {}{}; {}.", comparison.agreeing,
        comparison.points,
        100 * static_cast<double>(comparison.agreeing) / static_cast<double>(comparison.points),
        comparison.with,
        comparison.agrees()    ? ""
        : is_reduced(compared) ? ": reduced"
                               : ": less than 90 %",
        closer_counts("their", comparison.within_factor, comparison.in_quantiles)));
  }
  if (comparison.without_ours > 0) {
    text += paragraph(
        fmt::format("{} of their {} test points cannot be compared: no run of ours is there.",
                    comparison.without_ours, comparison.points + comparison.without_ours));
  }
  const int64_t epochs = compared.experiment.settings.epochs;
  if (compared.published && !comparison.agrees() && epochs < compared.whole_epochs) {
    text += paragraph(
        fmt::format("The published runs trained for {} epochs: a training of {} is not expected to "
                    "agree.",
                    compared.whole_epochs, epochs));
  }
  return text;
}

Json growth_json(const Growth& growth) {
  return {{"exponent", growth.exponent}, {"error", growth.error}};
}

Json point_json(const ComparedExperiment& compared, const Curve& curve, const CurvePoint& point,
                const ComparedPoint* pair) {
  const std::optional<Interval> interval = interval_of(point);
  Json ours = summary_json(summarise(compared.experiment, curve, point));
  ours["missing"] = point.missing;
  ours["diverged"] = point.diverged;
  ours["median_interval"] = interval ? Json::array({interval->low, interval->high}) : Json();
  Json object = {{"x", point.x ? Json(*point.x) : Json()}, {"ours", ours}};
  if (pair == nullptr) return object;
  object["theirs"] = summary_json(pair->theirs);
  object["ratio"] = pair->ratio;
  object["agrees"] = pair->agrees();
  object["within_factor"] = pair->within_factor;
  object["in_quantiles"] = pair->in_quantiles;
  if (!pair->correction.empty()) object["correction"] = pair->correction;
  return object;
}

Json curve_json(const ComparedExperiment& compared, const Curve& curve) {
  const ComparedCurve* both = find_compared(compared.comparison, curve);
  Json points = Json::array();
  for (const CurvePoint& point : curve.points) {
    points.push_back(point_json(compared, curve, point, find_compared(both, point.x)));
  }
  Json object = {{"task", curve.task}, {"line", curve.line}, {"split", to_string(curve.split)}};
  if (both != nullptr) {
    object["compared"] = both->points.size();
    object["agreeing"] = both->agreeing;
    object["within_factor"] = both->within_factor;
    object["in_quantiles"] = both->in_quantiles;
    object["log10_ratio"] = both->log10_ratio;
  }
  if (const auto exponents = exponents_of(compared, curve)) {
    object["growth"] = growth_json(exponents->ours);
    if (both != nullptr) object["their_growth"] = growth_json(exponents->theirs);
  }
  object["points"] = points;
  return object;
}

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

Json summary_json(const PointSummary& point) {
  return {{"runs", point.runs},     {"min", point.minimum}, {"q10", point.q10},
          {"median", point.median}, {"q90", point.q90},     {"max", point.maximum}};
}

std::string comparison_text(const ComparedExperiment& compared) {
  const Experiment& experiment = compared.experiment;
  std::string title = fmt::format("{}: {}", experiment.name, experiment.title);
  if (!experiment.paper.empty()) title += fmt::format(" ({})", experiment.paper);
  if (!experiment.reduction.empty()) title += fmt::format(" [{}]", experiment.reduction);
  std::string text = paragraph(title);
  if (!compared.comparison.curves.empty()) {
    text += paragraph(fmt::format(
        "{} compared with {}. A point agrees when our median is in [min / 2, 2 max] of their "
        "runs or within a factor of 3 of their median.",
        compared.results, compared.comparison.with));
  }
  for (const std::string& task : experiment.tasks) {
    for (const Curve& curve : compared.curves) {
      if (curve.task != task) continue;
      const std::string scale =
          curve.split == Split::test && !experiment.axis.is_tested()
              ? fmt::format(" at {} = {}", experiment.axis.test_axis.name, experiment.axis.test_x)
              : "";
      text += fmt::format("\n{}, {}: {} {}{}\n", task, curve.line, to_string(curve.split),
                          experiment.metric->heading, scale);
      text += curve_table(compared, curve) + curve_notes(compared, curve);
    }
    text += paired_table(compared, task);
  }
  return text + "\n" + verdict(compared) + missing_part(compared);
}

std::string comparison_json(const ComparedExperiment& compared) {
  const Comparison& comparison = compared.comparison;
  Json curves = Json::array(), paired = Json::array();
  for (const Curve& curve : compared.curves) curves.push_back(curve_json(compared, curve));
  for (const PairedPoint& point : compared.paired) {
    paired.push_back({{"task", point.task},
                      {"first", point.first},
                      {"second", point.second},
                      {"x", point.x ? Json(*point.x) : Json()},
                      {"pairs", point.test.pairs},
                      {"median_ratio", point.median_ratio},
                      {"statistic", point.test.statistic},
                      {"p_value", point.test.p_value}});
  }
  Json missing = Json::array();
  for (const MissingRuns& place : compared.missing) {
    missing.push_back({{"task", place.task},
                       {"line", place.line},
                       {"x", place.x ? Json(*place.x) : Json()},
                       {"runs", place.runs},
                       {"missing", place.missing},
                       {"failed", place.failed},
                       {"failure", place.failure}});
  }
  const Json document = {{"experiment", compared.experiment.name},
                         {"reduction", compared.experiment.reduction},
                         {"results", compared.results},
                         {"with", comparison.with},
                         {"axis", compared.experiment.axis.key},
                         {"points", comparison.points},
                         {"agreeing", comparison.agreeing},
                         {"within_factor", comparison.within_factor},
                         {"in_quantiles", comparison.in_quantiles},
                         {"agrees", comparison.agrees()},
                         {"without_ours", comparison.without_ours},
                         {"missing", missing},
                         {"curves", curves},
                         {"paired", paired},
                         {"only_ours", comparison.only_ours},
                         {"only_theirs", comparison.only_theirs}};
  return json_text(document);
}

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
