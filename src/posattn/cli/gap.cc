// posattn gap
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/bounds/certificate/certificate_rows.h"
#include "posattn/bounds/gap_measures.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/gap_output.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/terminal.h"

namespace posattn {
namespace {

constexpr uint64_t most_rows_bytes = uint64_t{1} << 26;

struct GapFlags {
  std::vector<std::string> runs;
  std::string certificates;
  double clip = 1;
  int64_t fresh_samples = 20'000;
  int threads = 0;
  bool json = false;
};

bounds::GapRun measured_run(const std::filesystem::path& model, const GapFlags& flags) {
  const std::optional<RunConfig> settings = settings_of_run(model);
  if (!settings) {
    throw Error(ExitCode::data, fmt::format("'{}' is a model file alone", model.string()),
                "runs, as train writes them: a gap needs the samples of training");
  }
  const Model trained = read_model(model, {});
  check_settings(model, *settings, trained);
  return bounds::gap_run(trained, {.name = model.parent_path().string(),
                                   .run = *settings,
                                   .clip = flags.clip,
                                   .fresh_samples = flags.fresh_samples,
                                   .threads = thread_count(flags.threads)});
}

// What `certify --rows` proved of each run, as one more number.
void add_certificates(const std::string& file, std::vector<bounds::GapRun>& runs) {
  const auto risks = bounds::certified_risks(read_input_file(file, most_rows_bytes), file);
  for (bounds::GapRun& run : runs) {
    const auto found = risks.find(run.name);
    if (found == risks.end()) {
      throw Error(ExitCode::data, fmt::format("no certificate of {} in '{}'", run.name, file),
                  "a line for every run, with the run's name as it is given here",
                  fmt::format("posattn certify {} --rows {}", run.name, file));
    }
    run.values.push_back(found->second);
  }
}

ExitCode measure_gaps(const GapFlags& flags) {
  std::vector<bounds::GapRun> runs;
  for (const std::filesystem::path& path : find_named_models(flags.runs)) {
    runs.push_back(measured_run(path, flags));
  }
  std::vector<bounds::GapMeasure> measures = bounds::gap_measures();
  if (!flags.certificates.empty()) {
    measures.push_back({"certificate", "certificate"});
    add_certificates(flags.certificates, runs);
  }
  write_output(flags.json ? gap_json(runs, measures) : gap_text(runs, measures));
  return ExitCode::done;
}

void add_gap_options(CLI::App& command, GapFlags& flags) {
  command.add_option("RUN", flags.runs, "Run folders, or folders of runs")
      ->required()
      ->type_name("");
  command.add_option("--clip", flags.clip, "b: squared errors count up to b^2")
      ->option_text("NUMBER [1]");
  command.add_option("--fresh-samples", flags.fresh_samples, "For the measured gap")
      ->option_text("INT [20000]");
  command
      .add_option("--certificates", flags.certificates,
                  "Lines of `certify --rows`: their bounds as one more number")
      ->option_text("FILE");
  add_threads_option(command, flags.threads);
  add_json_flag(command, flags.json);
}

const Command registered_gap(
    {.name = "gap",
     .group = Group::theory,
     .summary = "Which numbers of trained models track their generalisation gap",
     .examples = {"posattn gap runs/cumulative-min", "posattn gap runs/few runs/many --json"},
     .details =
         "The gap: clipped loss on fresh samples less that on the run's own training set, as "
         "`bound` measures it. Kendall's tau with 95 % bootstrap intervals, over all pairs of runs "
         "and over pairs that share their architecture, and their number of samples too."},
    add_gap_options, measure_gaps);

}  // namespace
}  // namespace posattn
