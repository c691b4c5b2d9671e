// posattn reproduce

#include <algorithm>
#include <atomic>
#include <iterator>

#include "posattn/base/command.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/grid_choice.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/progress.h"
#include "posattn/cli/usage_errors.h"
#include "posattn/experiments/comparison.h"
#include "posattn/experiments/experiment.h"

namespace posattn {
namespace {

struct ReproduceFlags : GridChoice {
  std::string shard;
  int threads = 0;
  bool dry_run = false, json = false;
};

// Where runs and results go.
std::filesystem::path training_folder(const ReproduceFlags& options,
                                      const std::optional<Shard>& shard) {
  return shard ? shard_folder(options.results, *shard) : std::filesystem::path(options.results);
}

GridSummary train(const ReproduceFlags& options, const std::optional<Shard>& shard,
                  const std::vector<ExperimentRun>& runs, const std::string& command_line,
                  const std::atomic<bool>& stop) {
  GridDisplay display;
  RunnerOptions runner;
  runner.results = options.results;
  runner.shard = shard;
  runner.threads = thread_count(options.threads);
  runner.command_line = command_line;
  runner.stop = &stop;
  runner.fail_fast = options.fail_fast;
  runner.found = [&](const GridSurvey& found) {
    display.notice(survey_line(found, training_folder(options, shard)));
  };
  runner.progress = [&](const GridProgress& progress) { display.update(progress); };
  runner.notice = [&](const std::string& line) { display.notice(line); };
  GridSummary summary = run_experiment(runs, runner);
  display.finish();
  return summary;
}

std::string next_command(const ReproduceFlags& options) {
  std::vector<std::string> words = {"posattn", "compare", options.experiment};
  for (const std::string& word : whole_words(options)) words.push_back(word);
  words.insert(words.end(), {"--results", options.results});
  return shell_command(words);
}

// Seeds of --seeds that the file does not have are trained, but no table or figure shows them.
void note_unseen_seeds(const Experiment& chosen, const Experiment& whole) {
  std::vector<uint64_t> unseen;
  std::ranges::copy_if(chosen.seeds, std::back_inserter(unseen), [&](uint64_t seed) {
    return std::ranges::find(whole.seeds, seed) == whole.seeds.end();
  });
  if (unseen.empty()) return;
  write_notice(fmt::format(
      "not among the experiment's seeds, so that its table and figure do not show their runs: {}",
      fmt::join(unseen, ", ")));
}

// Errors of written answers leave out answers that are not numbers; a second table counts these.
std::string unparsable_table(const Experiment& whole, const ResultsDatabase& database) {
  const Metric& unparsable = find_metric("unparsable");
  if (!whole.metric->of_answers || whole.metric == &unparsable) return "";
  Experiment counted = whole;
  counted.metric = &unparsable;
  return median_table(counted, curves_of(counted, database)) + "\n";
}

Error failed_runs(const GridSummary& summary) {
  constexpr std::size_t most = 20;
  std::string list;
  for (std::size_t i = 0; i < std::min(most, summary.failures.size()); ++i) {
    const RunFailure& failure = summary.failures[i];
    list += fmt::format("{}: {}\n        ", failure.folder.string(), failure.message);
  }
  if (summary.failures.size() > most) {
    list += fmt::format("and {} more\n        ", summary.failures.size() - most);
  }
  list += "the same command tries again; a folder that stays broken may be removed";
  return Error(ExitCode::failed,
               fmt::format("{} of {} runs failed", summary.failures.size(), summary.runs), "",
               list);
}

// Table and figure, as far as there are results.
void show_whole(const ReproduceFlags& options, const Experiment& whole, const GridSummary& summary,
                const std::string& command_line) {
  const ResultsDatabase database(options.results, ResultsDatabase::Access::read);
  const std::vector<Curve> curves = curves_of(whole, database);
  ExperimentFiles files;
  if (!curves.empty()) {
    files = write_experiment_files(options.results, whole, database, command_line);
  }
  if (options.json) {
    write_output(reproduce_json(whole, options.results, summary, files, curves));
  } else if (!curves.empty()) {
    write_output(median_table(whole, curves) + "\n" + unparsable_table(whole, database) +
                 file_list(files));
  }
}

// A shard writes neither: other shards would write the same files.
void show_shard(const ReproduceFlags& options, const Shard& shard, const Experiment& whole,
                const GridSummary& summary) {
  write_output(options.json
                   ? reproduce_json(whole, training_folder(options, shard), summary, {}, {})
                   : shard_line(whole, shard, summary));
}

ExitCode reproduce(const ReproduceFlags& flags, const CommandLine& line) {
  ReproduceFlags options = flags;
  std::optional<Shard> shard;
  if (!options.shard.empty()) shard = shard_from(options.shard);
  const int threads = thread_count(options.threads);
  if (options.changes.precision.empty()) {
    options.changes.precision = precision_to_train(chosen_part(options), options.results);
  }
  const Experiment chosen = chosen_part(options), whole = whole_experiment(options);
  if (options.dry_run) {
    write_output(options.json ? survey_json(chosen, options.results, shard)
                              : survey_table(chosen, options.results, shard));
    return ExitCode::done;
  }
  const std::vector<ExperimentRun> runs = runs_of(chosen);
  // The device, before anything is written; where nothing is missing, tables and figures need none.
  const bool complete = whole_of(survey(options.results, runs, shard)).missing() == 0;
  if (!complete) validate(runs.front().config);
  const std::string command_line = shell_command(line.arguments);
  write_notice(fmt::format("{}\n{}: {}{}",
                           machine_line(find_machine(), threads, device_used(runs.front().config)),
                           whole.output_name, whole.title,
                           whole.paper.empty() ? "" : fmt::format(" ({})", whole.paper)));
  note_unseen_seeds(chosen, whole);
  const std::atomic<bool>& stop = catch_interrupts();
  const GridSummary summary = train(options, shard, runs, command_line, stop);
  if (shard) {
    show_shard(options, *shard, whole, summary);
  } else {
    show_whole(options, whole, summary, command_line);
  }
  // Only failures stop a grid otherwise (--fail-fast).
  if (summary.interrupted > 0 && (stop || summary.failures.empty())) {
    if (!summary.failures.empty()) {
      flush_output();
      print_error(failed_runs(summary));
    }
    write_notice(
        fmt::format("interrupted; the checkpoints are saved. To go on:\n  {}", command_line));
    return ExitCode::interrupted;
  }
  if (!summary.failures.empty()) {
    flush_output();
    throw failed_runs(summary);
  }
  if (!options.json && (shard || !published_points(whole).empty())) {
    write_output(
        fmt::format("\nnext:  {}\n", shard ? shell_command({"posattn", "merge", options.results})
                                           : next_command(options)));
  }
  return ExitCode::done;
}

void add_reproduce_options(CLI::App& command, ReproduceFlags& options) {
  add_grid_options(command, options);
  option(command, "--shard", options.shard, "K/M",
         "Only part K of M of the runs, from 0/M to (M-1)/M");
  add_threads_option(command, options.threads);
  command.add_flag("--dry-run", options.dry_run,
                   "Print what is there and what is missing; train nothing");
  add_json_flag(command, options.json);
}

const Command registered_reproduce(
    {.name = "reproduce",
     .group = Group::paper,
     .summary = "Train the missing runs of an experiment and draw its figure",
     .examples = {"posattn reproduce value-range --quick",
                  "posattn reproduce value-range --tasks sort,cumulative-sum --runs 3",
                  "posattn reproduce sample-count --device cuda --results big",
                  "posattn reproduce sample-count --shard 0/16 --results DIR",
                  "posattn reproduce mine.toml --dry-run"},
     .details =
         "Results go to DIR/results.db, runs to DIR/runs, table and figure to DIR/EXPERIMENT. "
         "Ctrl-C saves checkpoints, and the same command goes on, also after a kill. A run that "
         "was trained for any experiment is not trained again. Table and figure show the whole "
         "experiment, as far as there are results.\n\n--shard K/M trains one of M parts of the "
         "runs in DIR/shards/K-of-M. 'posattn merge', or this command without --shard, combines "
         "the shards. --quick, --epochs, --precision and --weights make experiments of their own, "
         "as NAME-quick (docs/files.md)."},
    add_reproduce_options, reproduce);

}  // namespace
}  // namespace posattn
