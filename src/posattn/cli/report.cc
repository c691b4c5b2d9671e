// posattn report
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "posattn/base/file.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/terminal.h"
#include "posattn/report/page.h"
#include "posattn/report/read_runs.h"

namespace posattn {
namespace {

struct Options {
  std::vector<std::string> runs;
  std::string output, title;
  bool json = false;
};

ExitCode report(const Options& options) {
  ReportInput input = read_runs({options.runs.begin(), options.runs.end()});
  if (!options.title.empty()) input.title = options.title;
  const std::filesystem::path page =
      options.output.empty() ? std::filesystem::path(options.runs.front()) / "report.html"
                             : std::filesystem::path(options.output);
  const std::string html = report_page(input);
  write_file(page, html);
  if (options.json) {
    const nlohmann::ordered_json document = {{"page", page.string()}, {"runs", input.runs.size()}};
    write_output(document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                 "\n");
  } else {
    write_output(fmt::format("{} run{} in {}\n", input.runs.size(),
                             input.runs.size() == 1 ? "" : "s", page.string()));
  }
  return ExitCode::done;
}

}  // namespace

void add_report(Program& program) {
  auto options = std::make_shared<Options>();
  CLI::App& command =
      add_command(program,
                  {.name = "report",
                   .description = "Draw runs as one HTML page: losses, errors by range, attention",
                   .examples = {"posattn report runs/cumulative-sum",
                                "posattn report runs/a runs/b --output comparison.html"},
                   .details = "The page needs no other file. Its figures are drawn by gnuplot."},
                  [options] { return report(*options); });
  command.add_option("RUNS", options->runs, "Run folders or folders of runs")
      ->required()
      ->type_name("");
  command.add_option("--output", options->output, "The page")
      ->option_text("FILE [report.html in the first of RUNS]");
  command.add_option("--title", options->title, "Its title")->option_text("TEXT [task and length]");
  add_json_flag(command, options->json);
}

}  // namespace posattn
