// posattn report

#include "posattn/base/command.h"
#include "posattn/base/file.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/playground_page.h"
#include "posattn/experiments/recorded_runs.h"
#include "posattn/report/experiment/results.h"
#include "posattn/report/page/page_parts.h"
#include "posattn/report/page/report_input.h"
#include "posattn/report/plot/gnuplot.h"

namespace posattn {
namespace {

struct ReportFlags {
  std::vector<std::string> sources;  // runs, or with --results experiments
  std::string results, output, title;
  bool playground = false, json = false;
};

// What to print: as JSON, or the line.
struct Written {
  Json document;
  std::string line;
};

// A page that nobody named is a file of the folder's own.
void write_page(const ReportFlags& options, const std::string& path, const std::string& page) {
  options.output.empty() ? write_file(path, page) : write_result(path, page);
  if (page.find(no_figures) != std::string::npos) fmt::print(stderr, "{}\n", no_figures);
}

std::string page_path(const ReportFlags& options, const std::filesystem::path& folder) {
  return options.output.empty() ? (folder / "report.html").string() : options.output;
}

// The medians of the page's tests, side by side and in its digits; empty without tests.
std::string test_tables(const ReportInput& input) {
  const std::vector<ArchitectureSummary> architectures = group_by_architecture(input);
  const Metric& loss = loss_of(architectures);
  std::string text;
  for (const EvaluationAxis& axis : shown_axes(input)) {
    std::vector<std::string> heading{axis.name};
    std::map<double, std::vector<std::string>> rows;
    for (const ArchitectureSummary& architecture : architectures) {
      heading.push_back(architecture.name);
      for (const auto& [x, spread] : architecture.tests(axis.name, loss)) {
        std::vector<std::string>& row = rows[x];
        row.resize(heading.size() - 1);
        row.back() = three_digits(spread.median);
      }
    }
    TextTable table(heading, 0);
    for (auto& [x, row] : rows) {
      row.resize(heading.size() - 1);
      row.insert(row.begin(), fmt::format("{:g}", x));
      table.add_row(row);
    }
    text += fmt::format("\n{} on fresh samples, median of the runs:\n{}", loss.words,
                        table.to_string());
  }
  return text;
}

// The models to set side by side: positional and standard where there are both, else of the first
// two architectures that have one.
std::vector<std::filesystem::path> compared_models(const ReportInput& input) {
  std::map<std::string, std::filesystem::path> first;
  for (const RunReport& run : input.runs) {
    if (!run.model.empty()) first.emplace(run.architecture, run.model);
  }
  if (first.contains("positional") && first.contains("standard")) {
    return {first["positional"], first["standard"]};
  }
  std::vector<std::filesystem::path> models;
  for (const auto& [architecture, model] : first) {
    if (models.size() < 2) models.push_back(model);
  }
  return models;
}

// The playground with the models of a report, written next to it; its path, or "" where nobody
// asked for it and it cannot be.
std::string write_playground(const ReportFlags& options, const ReportInput& input,
                             const std::filesystem::path& page) {
  // -o names the one file to write.
  if (!options.playground && !options.output.empty()) return "";
  try {
    const PageContent content{.models = page_models(compared_models(input)), .program = {}};
    const std::string filled = filled_playground(find_playground(), content);
    const std::filesystem::path target =
        page.parent_path() / (page.stem().string() + "-playground.html");
    write_file(target, filled);
    return target.string();
  } catch (const Error&) {
    if (options.playground) throw;
    return "";
  }
}

Written report_runs(const ReportFlags& options) {
  for (const std::string& source : options.sources) {
    // A database without any result does not count as a run.
    if (has_results(source) ||
        std::filesystem::exists(std::filesystem::path(source) / "results.db")) {
      throw Error(ExitCode::usage, fmt::format("'{}' holds experiments", source), "run folders",
                  shell_command({"posattn", "report", "--results", source}));
    }
  }
  ReportInput input = read_runs({options.sources.begin(), options.sources.end()});
  for (const std::string& line : input.left_out) fmt::print(stderr, "{}\n", line);
  if (!options.title.empty()) input.title = options.title;
  const std::string page = page_path(options, options.sources.front());
  const std::string playground = write_playground(options, input, page);
  input.playground = std::filesystem::path(playground).filename().string();
  write_page(options, page, report_page(input));
  Written written{{{"page", page}, {"runs", input.runs.size()}},
                  fmt::format("{} in {}\n", plural(input.runs.size(), "run"), page)};
  if (!playground.empty()) {
    written.document["playground"] = playground;
    written.line += fmt::format("their models to play with in {}\n", playground);
  }
  written.line += test_tables(input);
  return written;
}

Written report_experiments(const ReportFlags& options) {
  const std::vector<ExperimentResults> all = read_results(options.results, options.sources);
  const std::string page = page_path(options, options.results);
  write_page(options, page,
             experiment_page(options.title.empty() ? "Experiments" : options.title, all));
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const ExperimentResults& results : all) names.push_back(results.experiment.output_name);
  return {{{"page", page}, {"experiments", names}},
          fmt::format("{} in {}\n", plural(all.size(), "experiment"), page)};
}

ExitCode report(const ReportFlags& options) {
  if (options.sources.empty() && options.results.empty()) {
    throw Error(ExitCode::usage, "nothing to report on", "run folders, or --results",
                "posattn report --results results");
  }
  refuse_with_standard_output(options.output, options.json, "--json");
  refuse_with_standard_output(options.output, options.playground, "--playground");
  if (options.playground && !options.results.empty()) {
    throw Error(ExitCode::usage, "--playground with --results", "runs, whose models it shows");
  }
  const Written written =
      options.results.empty() ? report_runs(options) : report_experiments(options);
  if (is_standard_output(options.output)) return ExitCode::done;
  if (options.json) {
    write_output(json_text(written.document));
  } else {
    write_output(written.line);
  }
  return ExitCode::done;
}

void add_report_options(CLI::App& command, ReportFlags& options) {
  argument(command, "RUNS", options.sources,
           "Run folders or folders of runs; with --results: experiments, by name or file");
  option(command, "--results", options.results, "DIR",
         "Folder of `posattn reproduce`: draw its experiments");
  add_output_option(command, options.output, "The page; '-': standard output",
                    "FILE [report.html in DIR or the first of RUNS]");
  option(command, "--title", options.title, "TEXT [task and length, or Experiments]", "Its title");
  command.add_flag("--playground", options.playground,
                   "Also write the playground with the models of these runs next to the page, and "
                   "link it; without --output that is done wherever it can be");
  add_json_flag(command, options.json);
}

const Command registered_report(
    {.name = "report",
     .group = Group::train,
     .summary = "Draw runs or experiments as one HTML page",
     .examples = {"posattn report runs/cumulative-sum",
                  "posattn report runs/a runs/b --output comparison.html",
                  "posattn report --results results",
                  "posattn report --results results value-range mine.toml"},
     .details =
         "The page needs no other file. Its figures are drawn by gnuplot, and left out without it. "
         "The runs must share all "
         "settings but architecture, seeds, device, precision and engine. Their median test errors "
         "are printed, too. With --results the page "
         "shows experiments: figures, medians, and the comparison with the published results."},
    add_report_options, report);

}  // namespace
}  // namespace posattn
