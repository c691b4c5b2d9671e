#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "posattn/base/error.h"
#include "posattn/report/experiment/figure.h"
#include "posattn/report/experiment/results.h"
#include "posattn/report/markup.h"
#include "posattn/report/page/page_parts.h"
#include "posattn/report/plot/gnuplot.h"

namespace posattn {
namespace {

// An experiment with what several of its parts need.
struct Section {
  const ExperimentResults& results;
  Comparison comparison;
  size_t number = 0;  // from 1: tells ids apart
};

std::string full_title(const Experiment& experiment) {
  const std::string title = escape_markup(experiment.title);
  return experiment.reduction.empty()
             ? title
             : fmt::format("{} ({})", title, escape_markup(experiment.reduction));
}

std::string time_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string agreement_cells(const Experiment& experiment, const Comparison& comparison) {
  if (comparison.points == 0) return "<td>not published</td><td></td><td></td>";
  const std::string verdict =
      comparison.agrees() ? "" : fmt::format(" ({})", verdict_text(false, experiment));
  return fmt::format("<td>{} of {}{}</td><td>{}</td><td>{}</td>", comparison.agreeing,
                     comparison.points, verdict, comparison.within_factor, comparison.in_quantiles);
}

std::string overview(const std::vector<Section>& sections) {
  std::string text =
      "<tr><th>experiment</th><th class=\"name\">reproduces</th>"
      "<th>finished runs</th><th>training</th><th>points that agree</th><th>within × 3</th>"
      "<th>in [q10, q90]</th></tr>\n";
  for (const auto& [results, comparison, number] : sections) {
    const RunTally& tally = results.tally;
    text += fmt::format(
        "<tr><td><a href=\"#experiment{}\">{}</a></td><td class=\"name words\">{}</td><td>{} of "
        "{}</td>"
        "<td>{}</td>{}</tr>\n",
        number, escape_markup(results.experiment.output_name),
        escape_markup(results.experiment.paper), tally.done + tally.diverged, tally.runs,
        time_text(tally.seconds), agreement_cells(results.experiment, comparison));
  }
  return table_element("experiments", text) +
         paragraph(
             "A point agrees when our median lies between half the smallest and twice the largest "
             "published run, or within a factor of 3 of the published median; a curve, or an "
             "experiment, when nine of ten of its points do. The other two columns: how many lie "
             "within that "
             "factor of 3, and how many between the 10 % and 90 % quantiles of the published runs. "
             "Training: the wall-clock time in which these runs were trained.");
}

std::string introduction(const Experiment& experiment) {
  std::string text;
  if (!experiment.paper.empty()) {
    text += fmt::format("Reproduces {}. ", escape_markup(experiment.paper));
  }
  text += escape_markup(experiment.description);
  return text.empty() ? "" : paragraph(text);
}

// The page must also say what is missing.
std::string warnings(const ExperimentResults& results) {
  const RunTally& tally = results.tally;
  std::vector<std::string> parts;
  const auto add = [&](int64_t count, const char* what) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, what));
  };
  add(tally.missing, "missing");
  add(tally.failed, "failed");
  add(tally.diverged, "diverged");
  std::string text;
  if (!parts.empty()) {
    text += paragraph(fmt::format("<b>Of {} runs: {}.</b>", tally.runs,
                                  fmt::format("{}", fmt::join(parts, ", "))));
  }
  if (!results.experiment.reduction.empty() && !results.published.empty()) {
    text += paragraph(
        "Reduced: a training this short is not expected to agree with the published results.");
  }
  return text;
}

std::string figure(const Section& section) try {
  const ExperimentResults& results = section.results;
  const auto draw = [&](FigureFormat format) {
    return draw_experiment(results.experiment, results.curves, results.published, format,
                           fmt::format("figure{}", section.number));
  };
  const std::string svg = draw(FigureFormat::svg);
  if (svg.empty()) return paragraph("No point can be drawn: no median is a number.");
  return fmt::format("<div class=\"figures\"><figure>{}</figure></div>\n",
                     drawing_in_two_shapes(svg, draw(FigureFormat::narrow_svg)));
} catch (const NoGnuplot&) {
  return paragraph(no_figures);
}

std::string medians(const ExperimentResults& results) {
  const Experiment& experiment = results.experiment;
  return fmt::format("<h3>{} on the test samples{}</h3>\n", capitalised(experiment.metric->words),
                     experiment.axis.is_tested()
                         ? ""
                         : fmt::format(" at {} = {:g}", experiment.axis.test_axis.name,
                                       experiment.axis.test_x)) +
         paragraph(fmt::format(
             "Medians over the runs, by {}. A run that diverged counts as {}.",
             escape_markup(experiment.axis.name()),
             experiment.metric->better == Better::higher ? "0 %" : "larger than any number")) +
         median_table(results);
}

std::string published_comparison(const ExperimentResults& results, const Comparison& comparison) {
  const std::string table = curve_table(results, comparison);
  if (table.empty()) return "";
  std::string text = comparison.points > 0 ? "<h3>Compared with the published results</h3>\n"
                                           : "<h3>Growth with c</h3>\n";
  if (comparison.points > 0) {
    text += paragraph(fmt::format(
        "Of {} published points, {} agree; {} lie within a factor of 3 of the published median, {} "
        "inside the 10 % to 90 % quantiles [q10, q90] of the published runs. Ours / published: "
        "geometric mean of the ratios of medians along the curve.",
        comparison.points, comparison.agreeing, comparison.within_factor, comparison.in_quantiles));
  }
  if (has_growth(results.experiment)) {
    text += paragraph(fmt::format(
        "Exponents: least-squares slope of log loss against log c between c = {} and c = {}, with "
        "the standard error of the fit; the variation between runs is not in it and mostly larger. "
        "A model that "
        "scales with its input has 2.",
        growth_first, growth_last));
  }
  text += table;
  std::set<std::string> corrections;
  for (const ComparedCurve& curve : comparison.curves) {
    for (const ComparedPoint& point : curve.points) {
      if (!point.correction.empty()) corrections.insert(point.correction);
    }
  }
  for (const std::string& correction : corrections) {
    text += paragraph("About the published results: " + escape_markup(correction) + ".");
  }
  const std::string differing = disagreement_table(results.experiment, comparison);
  if (!differing.empty()) {
    const auto points = static_cast<size_t>(comparison.points - comparison.agreeing);
    text += details_element(fmt::format("The {} that {} not agree", plural(points, "point"),
                                        points == 1 ? "does" : "do"),
                            differing);
  }
  return text;
}

std::string settings(const Experiment& experiment) {
  std::string text = fmt::format("seeds = {}\n", fmt::join(experiment.seeds, ", "));
  for (const ExperimentLine& line : experiment.lines) {
    std::vector<std::string> parts;
    for (const auto& [key, value] : line.settings)
      parts.push_back(fmt::format("{} = {}", key, value));
    text += line.is_baseline ? fmt::format("baseline {}\n", line.name)
                             : fmt::format("line {}: {}\n", line.name, fmt::join(parts, ", "));
  }
  for (const FieldInfo& field : config_fields()) {
    const bool of_grid = field.name == "task" || field.name == "architecture" ||
                         field.name == "seed" ||
                         (field.name == experiment.axis.key && !experiment.axis.is_tested());
    if (!of_grid) {
      text += fmt::format("{} = {}\n", field.name, get_field(experiment.settings, field.name));
    }
  }
  return details_element("Settings", "<pre>" + escape_markup(text) + "</pre>");
}

std::string section_text(const Section& section) {
  const ExperimentResults& results = section.results;
  std::string text = fmt::format("<h2 id=\"experiment{}\">{}</h2>\n", section.number,
                                 full_title(results.experiment)) +
                     introduction(results.experiment) + warnings(results) + figure(section) +
                     medians(results) + published_comparison(results, section.comparison) +
                     settings(results.experiment);
  if (!results.manifest.empty()) {
    text += details_element("Manifest", "<pre>" + escape_markup(results.manifest) + "</pre>");
  }
  return text + "<pre>" + escape_markup(results.command) + "</pre>\n";
}

}  // namespace

std::string experiment_page(const std::string& title, const std::vector<ExperimentResults>& all) {
  if (all.empty()) throw Error(ExitCode::data, "a page needs the results of an experiment");
  std::vector<Section> sections;
  sections.reserve(all.size());
  for (const ExperimentResults& results : all) {
    sections.push_back({results,
                        compare(summarise(results.experiment, results.curves), results.published,
                                "the published results"),
                        sections.size() + 1});
  }
  std::string body = overview(sections);
  for (const Section& section : sections) body += section_text(section);
  return html_page(title, body + audit_notes(all));
}

}  // namespace posattn
