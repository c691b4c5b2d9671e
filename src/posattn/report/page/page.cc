#include "posattn/report/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "posattn/base/error.h"
#include "posattn/report/architectures.h"
#include "posattn/report/markup.h"
#include "posattn/report/page/page_parts.h"
#include "posattn/report/svg/attention_svg.h"

namespace posattn {
namespace {

// [-2, 2] with a true minus and without a place to break the line.
std::string interval(double range, std::string_view factor = "") {
  return fmt::format("[\u2212{0:g}{1},\u00a0{0:g}{1}]", range, factor);
}

// "At c = 10 the median error of standard is 53 times that of positional.", over the largest scale
// that every architecture was tested at; "" when there is nothing to compare.
std::string comparison(const std::vector<ArchitectureSummary>& architectures) {
  const ArchitectureSummary *best = nullptr, *worst = nullptr;
  double c = 0;
  for (const ArchitectureSummary& architecture : architectures) {
    if (architecture.tests.empty()) return "";
    const ScaleSummary& last = architecture.tests.back();
    if (c != 0 && last.c != c) return "";
    c = last.c;
    if (!std::isfinite(last.mse.median) || last.mse.median <= 0) return "";
    const double median = last.mse.median;
    if (best == nullptr || median < best->tests.back().mse.median) best = &architecture;
    if (worst == nullptr || median > worst->tests.back().mse.median) worst = &architecture;
  }
  if (best == worst) return "";
  return fmt::format(" At c = {:g} the {}squared error of {} is {} times that of {}.", c,
                     best->runs.size() + worst->runs.size() > 2 ? "median " : "",
                     escape_markup(worst->name),
                     three_digits(worst->tests.back().mse.median / best->tests.back().mse.median),
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
      "These networks learned <b>{}</b> on sequences of {} with values in {}, and were then tested "
      "on values in {}: the same task on larger numbers than any they had seen. Trained: {}.",
      escape_markup(input.task), plural(static_cast<size_t>(input.length), "number"),
      interval(input.range), interval(input.range, "c"), fmt::join(counts, ", "));
  if (positional && standard) {
    text +=
        " The standard Transformer computes from the data where each node looks; the positional "
        "one only from positions, so larger numbers cannot change where its information flows.";
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

// One row per scale, so that the table fits a narrow window whatever the number of scales.
std::string test_table(std::string_view name, const ReportInput& input,
                       const std::vector<ArchitectureSummary>& architectures,
                       Spread ScaleSummary::*member, bool percent) {
  std::set<double> scales;
  std::string text = "<tr><th>c</th><th>test values in</th>";
  for (size_t i = 0; i < architectures.size(); ++i) {
    for (const ScaleSummary& test : architectures[i].tests) scales.insert(test.c);
    text += fmt::format("<th>{}{}</th>", style_dot(static_cast<int>(i)),
                        escape_markup(architectures[i].name));
  }
  text += "</tr>\n";
  for (const double c : scales) {
    text += fmt::format("<tr><td>{:g}</td><td>{}</td>", c, interval(input.range * c));
    for (const ArchitectureSummary& architecture : architectures) {
      const auto found = std::ranges::find(architecture.tests, c, &ScaleSummary::c);
      text += found == architecture.tests.end() ? "<td>not tested</td>"
                                                : spread_cell(*found.*member, percent);
    }
    text += "</tr>\n";
  }
  return table_element(name, text);
}

bool several_runs(const std::vector<ArchitectureSummary>& architectures) {
  return std::ranges::any_of(architectures,
                             [](const auto& group) { return group.runs.size() > 1; });
}

std::string tests(const ReportInput& input, const std::vector<ArchitectureSummary>& architectures) {
  const bool tested =
      std::ranges::any_of(architectures, [](const auto& group) { return !group.tests.empty(); });
  std::string text = heading("Error outside the training range");
  if (!tested) return text + paragraph("These runs have no test results.");
  text += paragraph(std::string("Mean squared error on fresh samples") +
                    (several_runs(architectures)
                         ? ": the median over the runs, beside it the smallest and largest."
                         : ", one run each."));
  text += test_table("mean squared error", input, architectures, &ScaleSummary::mse, false);
  text += "<details><summary>Error divided by c\u00b2, and accuracy</summary>\n";
  text += paragraph("MSE / c\u00b2 stays constant for a model that scales with its input.");
  text += test_table("error divided by c squared", input, architectures, &ScaleSummary::mse_over_c2,
                     false);
  text += paragraph("Accuracy: the share of samples with every output within 0.1 + 0.1 |target|.");
  text += test_table("accuracy", input, architectures, &ScaleSummary::accuracy, true);
  return text + "</details>\n";
}

std::string figures(const std::vector<ArchitectureSummary>& architectures) {
  const std::string band =
      several_runs(architectures) ? " The band reaches from the best run to the worst." : "";
  const auto figure = [&band](const FigureRequest& request, std::string_view caption) {
    const std::string svg = draw_figure(request);
    if (svg.empty()) return std::string();
    return fmt::format("<figure>{}<figcaption>{}{}</figcaption></figure>\n",
                       drawing_in_two_shapes(svg, draw_figure(request, FigureShape::narrow)),
                       caption, band);
  };
  return "<div class=\"figures\">\n" +
         figure(test_figure(architectures), "Test error against the scale c of the values.") +
         figure(loss_figure(architectures),
                "Loss during training; dotted: on the validation samples.") +
         "</div>\n";
}

std::string attention(const std::vector<ArchitectureSummary>& architectures) {
  // One scale for all: they are there to be compared.
  double scale_end = 0;
  for (const ArchitectureSummary& architecture : architectures) {
    for (const RunReport* run : architecture.runs) {
      for (const AttentionMaps& map : run->attention) {
        scale_end =
            std::max(scale_end, attention_scale_end(map.weights, map.depth, map.heads, map.nodes));
      }
    }
  }
  std::string maps;
  for (const ArchitectureSummary& architecture : architectures) {
    for (const RunReport* run : architecture.runs) {
      for (const AttentionMaps& map : run->attention) {
        const std::string svg =
            attention_svg(map.weights, map.depth, map.heads, map.nodes, map.scratch_nodes,
                          fmt::format("{}, seed {}", architecture.name, run->seed), scale_end);
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
  return html_page(input.title, introduction(input, architectures) + warnings(architectures) +
                                    tests(input, architectures) + figures(architectures) +
                                    attention(architectures) + details(input, architectures));
}

}  // namespace posattn
