// posattn report
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/shell.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/output_file.h"
#include "posattn/cli/terminal.h"
#include "posattn/experiments/recorded_runs.h"
#include "posattn/report/experiment/page.h"
#include "posattn/report/experiment/results.h"
#include "posattn/report/page/page.h"
#include "posattn/report/page/page_parts.h"
#include "posattn/report/page/read_runs.h"

namespace posattn {
namespace {

struct ReportFlags {
  std::vector<std::string> sources;  // runs, or with --results experiments
  std::string results, output, title;
  bool json = false;
};

// What to print: as JSON, or the line.
struct Written {
  nlohmann::ordered_json document;
  std::string line;
};

std::string page_path(const ReportFlags& options, const std::filesystem::path& folder) {
  return options.output.empty() ? (folder / "report.html").string() : options.output;
}

Written report_runs(const ReportFlags& options) {
  for (const std::string& source : options.sources) {
    // A database without a single result is still no run.
    if (has_results(source) ||
        std::filesystem::exists(std::filesystem::path(source) / "results.db")) {
      throw Error(ExitCode::usage, fmt::format("'{}' holds experiments", source), "run folders",
                  shell_command({"posattn", "report", "--results", source}));
    }
  }
  ReportInput input = read_runs({options.sources.begin(), options.sources.end()});
  if (!options.title.empty()) input.title = options.title;
  const std::string page = page_path(options, options.sources.front());
  write_result(page, report_page(input));
  return {{{"page", page}, {"runs", input.runs.size()}},
          fmt::format("{} in {}\n", plural(input.runs.size(), "run"), page)};
}

Written report_experiments(const ReportFlags& options) {
  const std::vector<ExperimentResults> all = read_results(options.results, options.sources);
  const std::string page = page_path(options, options.results);
  write_result(page, experiment_page(options.title.empty() ? "Experiments" : options.title, all));
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
  const Written written =
      options.results.empty() ? report_runs(options) : report_experiments(options);
  if (is_standard_output(options.output)) return ExitCode::done;
  if (options.json) {
    write_output(
        written.document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
        "\n");
  } else {
    write_output(written.line);
  }
  return ExitCode::done;
}

}  // namespace

void add_report(CommandLine& command_line) {
  auto options = std::make_shared<ReportFlags>();
  CLI::App& command =
      add_command(command_line,
                  {.name = "report",
                   .description = "Draw runs or experiments as one HTML page",
                   .examples = {"posattn report runs/cumulative-sum",
                                "posattn report runs/a runs/b --output comparison.html",
                                "posattn report --results results",
                                "posattn report --results results value-range mine.toml"},
                   .details = "The page needs no other file. Its figures are drawn by gnuplot."},
                  [options] { return report(*options); });
  command
      .add_option("RUNS", options->sources,
                  "Run folders or folders of runs; with --results: experiments, by name or file")
      ->type_name("");
  command
      .add_option("--results", options->results,
                  "Folder of `posattn reproduce`: draw its experiments")
      ->option_text("DIR");
  add_output_option(command, options->output, "The page; '-': standard output",
                    "FILE [report.html in DIR or the first of RUNS]");
  command.add_option("--title", options->title, "Its title")
      ->option_text("TEXT [task and length, or Experiments]");
  add_json_flag(command, options->json);
}

}  // namespace posattn
