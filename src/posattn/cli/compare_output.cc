#include "posattn/cli/compare_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "posattn/cli/text_table.h"

namespace posattn {
namespace {

using Json = nlohmann::ordered_json;

constexpr int page_columns = 100;

std::string paragraph(const std::string& text) { return wrapped(text, page_columns, 0) + "\n"; }

// So many significant digits, or all of a whole part that is not too long: 118, never 1.2e+02.
std::string digits(double value, int count) {
  if (std::isnan(value)) return "nan";  // never "-nan"
  if (value >= 99.5 && value < 1e5) return fmt::format("{:.0f}", value);
  return fmt::format("{:.{}g}", value, count);
}

std::string range(double low, double high) {
  return fmt::format("[{}, {}]", digits(low, 2), digits(high, 2));
}

std::string axis_name(const Experiment& experiment) {
  return experiment.axis.is_scale() ? "c" : experiment.axis.key;
}

std::string their_name(const ComparedExperiment& compared) {
  return compared.published ? "published" : "theirs";
}

Interval interval_of(const CurvePoint& point) {
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

std::string runs_text(const CurvePoint& point) {
  const auto finished = static_cast<int64_t>(point.runs.size());
  return point.missing == 0 ? std::to_string(finished)
                            : fmt::format("{}/{}", finished, finished + point.missing);
}

struct Exponents {
  Growth ours, theirs;
  double first = 0, last = 0;  // c that count
};

// Of the points that both have, or of all of ours where they have none.
Exponents exponents_of(const ComparedExperiment& compared, const Curve& curve) {
  std::vector<PointSummary> ours, theirs;
  if (const ComparedCurve* both = find_compared(compared.comparison, curve)) {
    for (const ComparedPoint& point : both->points) {
      ours.push_back(point.ours);
      theirs.push_back(point.theirs);
    }
  } else {
    ours = summarise(compared.experiment, std::vector<Curve>{curve});
  }
  Exponents exponents{.ours = growth_in_scale(ours), .theirs = growth_in_scale(theirs)};
  for (const PointSummary& point : ours) {
    if (!grows_at(point)) continue;
    if (exponents.first == 0) exponents.first = *point.x;
    exponents.last = *point.x;
  }
  return exponents;
}

// Exponents have a meaning for a loss over scales only.
bool has_growth(const Experiment& experiment, const Curve& curve) {
  return experiment.axis.is_scale() && experiment.metric == Metric::mse &&
         curve.split == Split::test;
}

std::string curve_table(const ComparedExperiment& compared, const Curve& curve) {
  const ComparedCurve* both = find_compared(compared.comparison, curve);
  std::vector<std::string> header = {axis_name(compared.experiment), "ours", "95 % interval",
                                     "runs"};
  if (both != nullptr) {
    header.insert(header.end(), {their_name(compared), "[min, max]", "runs", "ratio", "agrees"});
  } else {
    header.emplace_back("[min, max]");
  }
  TextTable table(header, 0);
  for (const CurvePoint& point : curve.points) {
    const PointSummary ours = summarise(compared.experiment, curve, point);
    const Interval interval = interval_of(point);
    std::vector<std::string> row = {point.x ? short_number(*point.x) : "-", digits(ours.median, 3),
                                    range(interval.low, interval.high), runs_text(point)};
    if (point.x && *point.x >= 1e4) row[0] = fmt::format("{}", *point.x);  // not 5e+04 samples
    if (const ComparedPoint* pair = find_compared(both, point.x)) {
      row.insert(row.end(), {digits(pair->theirs.median, 3) + (pair->correction.empty() ? "" : "*"),
                             range(pair->theirs.minimum, pair->theirs.maximum),
                             std::to_string(pair->theirs.runs), digits(pair->ratio, 3),
                             pair->agrees() ? "yes" : "no"});
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
  if (!has_growth(compared.experiment, curve)) return "";
  const auto [ours, theirs, first, last] = exponents_of(compared, curve);
  if (std::isnan(ours.exponent)) return "";
  std::string note = fmt::format("growth from c = {} to {}: c^{:.2f}", first, last, ours.exponent);
  if (!std::isnan(theirs.exponent)) {
    note += fmt::format(", {} c^{:.2f}", their_name(compared), theirs.exponent);
  }
  return note;
}

std::string missing_note(const Curve& curve, size_t seeds) {
  int64_t missing = 0, diverged = 0;
  for (const CurvePoint& point : curve.points) {
    missing = std::max(missing, point.missing);
    diverged = std::max(diverged, point.diverged);
  }
  std::string note;
  if (missing > 0) note = fmt::format("{} of {} runs not finished", missing, seeds);
  if (diverged > 0) {
    note += fmt::format("{}{} of {} runs diverged, so that there is no median",
                        missing > 0 ? "; " : "", diverged, seeds);
  }
  return note;
}

// Below a curve's table: verdict, growth, what is missing, corrections.
std::string curve_notes(const ComparedExperiment& compared, const Curve& curve) {
  std::string summary = growth_note(compared, curve);
  std::vector<std::string> corrections;
  if (const ComparedCurve* both = find_compared(compared.comparison, curve)) {
    summary =
        fmt::format("{} of {} points agree; mean log10 ratio {:+.2f}{}{}", both->agreeing,
                    both->points.size(), both->log10_ratio, summary.empty() ? "" : "; ", summary);
    for (const ComparedPoint& point : both->points) {
      const std::string note = "* " + point.correction;
      const bool is_new =
          std::find(corrections.begin(), corrections.end(), note) == corrections.end();
      if (!point.correction.empty() && is_new) corrections.push_back(note);
    }
  }
  std::string text;
  std::vector<std::string> notes = {summary, missing_note(curve, compared.experiment.seeds.size())};
  notes.insert(notes.end(), corrections.begin(), corrections.end());
  for (const std::string& note : notes) {
    if (!note.empty()) text += paragraph(note);
  }
  return text;
}

std::string paired_table(const ComparedExperiment& compared, const std::string& task) {
  TextTable table({axis_name(compared.experiment), "pairs", "ratio of medians", "p"}, 0);
  const PairedPoint* first = nullptr;
  for (const PairedPoint& point : compared.paired) {
    if (point.task != task) continue;
    if (first == nullptr) first = &point;
    table.add_row({point.x ? fmt::format("{}", *point.x) : "-", std::to_string(point.test.pairs),
                   digits(point.median_ratio, 3), digits(point.test.p_value, 2)});
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
    text += compared.published
                ? paragraph(
                      "No published numbers to compare with. --with DIR compares with another "
                      "results folder.")
                : paragraph(fmt::format("No point in common with {}.", comparison.with));
  } else {
    list(compared.published ? "No published numbers of" : "Not in " + comparison.with,
         comparison.only_ours);
  }
  list(compared.published ? "Published, but not in " + compared.results
                          : "Not in " + compared.results,
       comparison.only_theirs);
  if (comparison.points > 0) {
    text += paragraph(fmt::format(
        "{} of {} test points agree ({:.0f} %) with {}{}.", comparison.agreeing, comparison.points,
        100 * static_cast<double>(comparison.agreeing) / static_cast<double>(comparison.points),
        comparison.with, comparison.agrees() ? "" : ": less than 90 %"));
  }
  return text;
}

Json growth_json(const Growth& growth) {
  return {{"exponent", growth.exponent}, {"error", growth.error}};
}

Json summary_json(const PointSummary& point) {
  return {{"runs", point.runs},     {"min", point.minimum}, {"q10", point.q10},
          {"median", point.median}, {"q90", point.q90},     {"max", point.maximum}};
}

Json point_json(const ComparedExperiment& compared, const Curve& curve, const CurvePoint& point,
                const ComparedPoint* pair) {
  const Interval interval = interval_of(point);
  Json ours = summary_json(summarise(compared.experiment, curve, point));
  ours["missing"] = point.missing;
  ours["diverged"] = point.diverged;
  ours["median_interval"] = {interval.low, interval.high};
  Json object = {{"x", point.x ? Json(*point.x) : Json()}, {"ours", ours}};
  if (pair == nullptr) return object;
  object["theirs"] = summary_json(pair->theirs);
  object["ratio"] = pair->ratio;
  object["agrees"] = pair->agrees();
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
    object["log10_ratio"] = both->log10_ratio;
  }
  if (has_growth(compared.experiment, curve)) {
    const Exponents exponents = exponents_of(compared, curve);
    object["growth"] = growth_json(exponents.ours);
    if (both != nullptr) object["their_growth"] = growth_json(exponents.theirs);
  }
  object["points"] = points;
  return object;
}

}  // namespace

std::string comparison_text(const ComparedExperiment& compared) {
  const Experiment& experiment = compared.experiment;
  std::string title = fmt::format("{}: {}", experiment.name, experiment.title);
  if (!experiment.paper.empty()) title += fmt::format(" ({})", experiment.paper);
  if (!experiment.reduction.empty()) title += fmt::format(" [{}]", experiment.reduction);
  std::string text = paragraph(title);
  if (!compared.comparison.curves.empty()) {
    text += paragraph(fmt::format(
        "{} beside {}. A point agrees when our median lies in [min / 2, 2 max] of their "
        "runs or within a factor of 3 of their median.",
        compared.results, compared.comparison.with));
  }
  for (const std::string& task : experiment.tasks) {
    for (const Curve& curve : compared.curves) {
      if (curve.task != task) continue;
      const std::string scale = curve.split == Split::test && !experiment.axis.is_scale()
                                    ? fmt::format(" at c = {}", experiment.axis.test_scale)
                                    : "";
      text += fmt::format("\n{}, {}: {} {}{}\n", task, curve.line, to_string(curve.split),
                          experiment.metric == Metric::mse ? "MSE" : "accuracy", scale);
      text += curve_table(compared, curve) + curve_notes(compared, curve);
    }
    text += paired_table(compared, task);
  }
  return text + "\n" + verdict(compared);
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
  const Json document = {{"experiment", compared.experiment.name},
                         {"reduction", compared.experiment.reduction},
                         {"results", compared.results},
                         {"with", comparison.with},
                         {"axis", compared.experiment.axis.key},
                         {"points", comparison.points},
                         {"agreeing", comparison.agreeing},
                         {"agrees", comparison.agrees()},
                         {"curves", curves},
                         {"paired", paired},
                         {"only_ours", comparison.only_ours},
                         {"only_theirs", comparison.only_theirs}};
  // A path need not be UTF-8; JSON must be.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace posattn
