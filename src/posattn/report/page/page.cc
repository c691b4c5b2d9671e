#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "posattn/base/error.h"
#include "posattn/report/markup.h"
#include "posattn/report/page/page_parts.h"
#include "posattn/report/page/report_input.h"
#include "posattn/report/plot/gnuplot.h"
#include "posattn/report/svg/attention_svg.h"

namespace posattn {
namespace {

// [-2, 2] with a true minus and without a place to break the line.
std::string interval(double range, std::string_view factor = "") {
  return fmt::format("[\u2212{0:g}{1},\u00a0{0:g}{1}]", range, factor);
}

bool tested_along(const ReportInput& input, std::string_view axis) {
  return std::ranges::any_of(
      input.runs, [&](const RunReport& run) { return !tested_values(run.tests, axis).empty(); });
}

// "At c = 10 the median error of standard is 53 times that of positional.", over the largest scale
// that every architecture was tested at; "" when there is nothing to compare.
std::string comparison(const std::vector<ArchitectureSummary>& architectures) {
  const Metric& loss = loss_of(architectures);
  const ArchitectureSummary *best = nullptr, *worst = nullptr;
  double c = 0;
  double least = INFINITY, most = 0;
  for (const ArchitectureSummary& architecture : architectures) {
    const std::map<double, Spread> tests = architecture.tests("c", loss);
    if (tests.empty()) return "";
    const auto& [last, spread] = *tests.rbegin();
    if (c != 0 && last != c) return "";
    c = last;
    if (!std::isfinite(spread.median) || spread.median <= 0) return "";
    if (spread.median < least) best = &architecture;
    if (spread.median > most) worst = &architecture;
    least = std::min(least, spread.median);
    most = std::max(most, spread.median);
  }
  if (best == worst) return "";
  std::string_view error = loss.words;
  if (error.starts_with("mean ")) error.remove_prefix(5);  // before it stands "median"
  return fmt::format(" At c = {:g} the {}{} of {} is {} times that of {}.", c,
                     best->runs.size() + worst->runs.size() > 2 ? "median " : "", error,
                     escape_markup(worst->name), three_digits(most / least),
                     escape_markup(best->name));
}

std::string introduction(const ReportInput& input,
                         const std::vector<ArchitectureSummary>& architectures) {
  std::vector<std::string> counts;
  bool positional = false, standard = false;
  for (const ArchitectureSummary& architecture : architectures) {
    counts.push_back(fmt::format("{} ({})", escape_markup(architecture.name),
                                 plural(architecture.runs.size(), "run")));
    positional |= architecture.runs.front()->architecture == "positional";
    standard |= architecture.runs.front()->architecture == "standard";
  }
  std::string text = fmt::format(
      "These networks learned <b>{}</b> on {}{}. Trained: {}.", escape_markup(input.task),
      input.numbers
          ? fmt::format("sequences of {} with values in {}",
                        plural(static_cast<size_t>(input.length), "number"), interval(input.range))
          : fmt::format("samples of length {}", input.length),
      tested_along(input, "c")
          ? fmt::format(
                ", and were then tested on values {}: the same task on larger numbers "
                "than any they had seen",
                input.numbers ? "in " + interval(input.range, "c") : "up to c times as large")
          : "",
      fmt::join(counts, ", "));
  if (positional && standard) {
    text += fmt::format(
        " The standard Transformer computes from the data where each node looks; the positional "
        "one only from positions, so {} cannot change where its information flows.",
        input.numbers ? "larger numbers" : "other tokens");
  }
  return paragraph(text + comparison(architectures));
}

std::string spread_cell(const Spread& spread, bool percent) {
  const auto show = [percent](double value) {
    return percent && std::isfinite(value) ? fmt::format("{:.1f} %", 100 * value)
                                           : three_digits(value);
  };
  std::string text = "<td>" + show(spread.median);
  if (spread.count > 1) {
    text += fmt::format("<small>{} \u2013 {}</small>", show(spread.minimum), show(spread.maximum));
  }
  return text + "</td>";
}

// One row per x, so that the table fits a narrow window whatever the number of tests; "" where the
// metric was not measured.
std::string test_table(const ReportInput& input,
                       const std::vector<ArchitectureSummary>& architectures,
                       const EvaluationAxis& axis, const Metric& metric) {
  const bool is_scale = axis.name == "c" && input.numbers;
  std::set<double> places;
  std::vector<std::map<double, Spread>> tests;
  const std::vector<int> styles = styles_of(architectures);
  std::string text = fmt::format("<tr><th>{}</th>{}", escape_markup(axis.name),
                                 is_scale ? "<th>test values in</th>" : "");
  for (size_t i = 0; i < architectures.size(); ++i) {
    tests.push_back(architectures[i].tests(axis.name, metric));
    for (const auto& [x, spread] : tests.back()) places.insert(x);
    text +=
        fmt::format("<th>{}{}</th>", style_dot(styles[i]), escape_markup(architectures[i].name));
  }
  if (places.empty()) return "";
  text += "</tr>\n";
  for (const double x : places) {
    text += fmt::format("<tr><td>{:g}</td>", x);
    if (is_scale) text += fmt::format("<td>{}</td>", interval(input.range * x));
    for (const std::map<double, Spread>& of_architecture : tests) {
      const auto found = of_architecture.find(x);
      text += found == of_architecture.end() ? "<td>not tested</td>"
                                             : spread_cell(found->second, metric.percent);
    }
    text += "</tr>\n";
  }
  return table_element(fmt::format("{} by {}", metric.words, escape_markup(axis.name)), text);
}

bool several_runs(const std::vector<ArchitectureSummary>& architectures) {
  return std::ranges::any_of(architectures,
                             [](const auto& group) { return group.runs.size() > 1; });
}

std::string tests(const ReportInput& input, const std::vector<ArchitectureSummary>& architectures) {
  const std::vector<EvaluationAxis> axes = shown_axes(input);
  const Metric& loss = loss_of(architectures);
  std::string text =
      heading(tested_along(input, "c") ? "Error outside the training range" : "Test error");
  if (axes.empty()) return text + paragraph("These runs have no test results.");
  text += paragraph(capitalised(loss.words) + " on fresh samples" +
                    (several_runs(architectures)
                         ? ": the median over the runs, followed by the smallest and the largest."
                         : ", one run each."));
  for (const EvaluationAxis& axis : axes) {
    text += test_table(input, architectures, axis, loss);
    text += "<details><summary>Other measures of these tests</summary>\n";
    for (const Metric* metric : metrics()) {
      const std::string table =
          metric == &loss ? "" : test_table(input, architectures, axis, *metric);
      if (!table.empty()) text += paragraph(metric->note) + table;
    }
    text += "</details>\n";
  }
  return text;
}

// For classes the figure shows the share of errors, which needs no explanation.
const Metric& drawn_metric(Loss loss) {
  return loss == Loss::cross_entropy ? find_metric("label_error") : training_loss(loss);
}

std::string figures(const ReportInput& input,
                    const std::vector<ArchitectureSummary>& architectures) try {
  const std::string band =
      several_runs(architectures) ? " The band reaches from the best run to the worst." : "";
  const auto figure = [&band](const FigureRequest& request, std::string_view caption) {
    const std::string svg = draw_figure(request);
    if (svg.empty()) return std::string();
    return fmt::format("<figure>{}<figcaption>{}{}</figcaption></figure>\n",
                       drawing_in_two_shapes(svg, draw_figure(request, FigureShape::narrow)),
                       caption, band);
  };
  std::string text = "<div class=\"figures\">\n";
  const Metric& drawn = drawn_metric(input.loss);
  for (const EvaluationAxis& axis : shown_axes(input)) {
    text += figure(test_figure(architectures, axis, drawn),
                   axis.name == "c"
                       ? "Test error against the scale c of the values."
                       : fmt::format("Test error against the {}.", escape_markup(axis.words)));
  }
  return text +
         figure(loss_figure(architectures),
                "Loss during training; dotted: on the validation samples.") +
         "</div>\n";
} catch (const NoGnuplot&) {
  return paragraph(no_figures);
}

std::string attention(const std::vector<ArchitectureSummary>& architectures) {
  // All maps share one scale, so that they can be compared.
  double scale_end = 0;
  for (const ArchitectureSummary& architecture : architectures) {
    for (const RunReport* run : architecture.runs) {
      for (const AttentionMaps& map : run->attention) {
        scale_end = std::max(scale_end, attention_scale_end(map));
      }
    }
  }
  std::string maps;
  for (const ArchitectureSummary& architecture : architectures) {
    for (const RunReport* run : architecture.runs) {
      for (const AttentionMaps& map : run->attention) {
        const std::string svg =
            attention_svg(map, fmt::format("{}, seed {}", architecture.name, run->seed), scale_end);
        maps += fmt::format("<figure><figcaption>{}</figcaption>{}</figure>\n",
                            escape_markup(map.caption), svg);
      }
    }
  }
  if (maps.empty()) return "";
  return heading("Learned attention") +
         paragraph(
             "Where each node takes its information from, in every layer and head; one colour "
             "scale for all.") +
         "<div class=\"maps\">\n" + maps + "</div>\n";
}

std::string run_table(const std::vector<ArchitectureSummary>& architectures) {
  std::string text =
      "<tr><th>architecture</th><th>seed</th><th>status</th>"
      "<th>epochs</th><th>training loss</th><th>validation loss</th><th>seconds</th></tr>\n";
  for (const ArchitectureSummary& architecture : architectures) {
    for (const RunReport* run : architecture.runs) {
      std::optional<double> validation;
      for (const LossPoint& point : run->curve) {
        if (point.validation) validation = point.validation;
      }
      const bool trained = !run->curve.empty();
      text += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.1f}</td>"
          "</tr>\n",
          escape_markup(architecture.name), run->seed, escape_markup(run->status),
          trained ? run->curve.back().epoch : 0,
          trained ? three_digits(run->curve.back().train) : "none",
          validation ? three_digits(*validation) : "none", run->seconds);
    }
  }
  return table_element("runs", text);
}

std::string details(const ReportInput& input,
                    const std::vector<ArchitectureSummary>& architectures) {
  std::string text = heading("Runs") + run_table(architectures);
  for (const RunReport& run : input.runs) {
    if (run.manifest.empty()) continue;
    text += fmt::format(
        "<details><summary>Settings and manifest: {}, seed {}</summary>\n<pre>{}</pre></details>\n",
        escape_markup(group_name(run)), run.seed, escape_markup(run.manifest));
  }
  if (!input.commands.empty()) {
    text += heading("Make it again") + "<pre>";
    for (const std::string& command : input.commands) text += escape_markup(command) + "\n";
    text += "</pre>\n";
  }
  return text;
}

// The address of a file next to the page, whatever its name.
std::string address_next_to(std::string_view name) {
  std::string address = "./";
  for (const char letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool plain = std::isalnum(byte) != 0 || letter == '.' || letter == '-' || letter == '_';
    address += plain ? std::string(1, letter) : fmt::format("%{:02X}", byte);
  }
  return address;
}

std::string playground_link(const ReportInput& input) {
  if (input.playground.empty()) return "";
  return paragraph(fmt::format(
      "<a href=\"{}\">Try these models in the playground</a>: other inputs, other ranges, and what "
      "their attention does then.",
      address_next_to(input.playground)));
}

// A failed run must not vanish behind a median.
std::string warnings(const std::vector<ArchitectureSummary>& architectures) {
  std::string text;
  for (const ArchitectureSummary& architecture : architectures) {
    if (architecture.unfinished == 0) continue;
    text += paragraph(fmt::format("<b>{} of {} of {} did not finish</b>; see the table of runs.",
                                  architecture.unfinished, plural(architecture.runs.size(), "run"),
                                  escape_markup(architecture.name)));
  }
  return text;
}

}  // namespace

std::string report_page(const ReportInput& input) {
  if (input.runs.empty()) throw Error(ExitCode::data, "a report needs at least one run");
  const std::vector<ArchitectureSummary> architectures = group_by_architecture(input);
  return html_page(input.title, introduction(input, architectures) + playground_link(input) +
                                    warnings(architectures) + tests(input, architectures) +
                                    figures(input, architectures) + attention(architectures) +
                                    details(input, architectures));
}

}  // namespace posattn
