// posattn merge
#include "posattn/experiments/merge.h"

#include "posattn/cli/commands.h"
#include "posattn/report/page/page_parts.h"

namespace posattn {
namespace {

struct MergeFlags {
  std::string results;
  bool json = false;
};

std::string merge_json(const std::string& results, const MergeSummary& summary) {
  Json conflicts = Json::array(), problems = Json::array();
  for (const MergeConflict& conflict : summary.conflicts) {
    conflicts.push_back({{"key", conflict.key},
                         {"kept", conflict.kept.string()},
                         {"other", conflict.other.string()},
                         {"message", conflict.message}});
  }
  for (const ShardProblem& problem : summary.problems) {
    problems.push_back({{"place", problem.place.string()}, {"message", problem.message}});
  }
  const Json document = {{"results", results},         {"shards", summary.shards},
                         {"added", summary.added},     {"there", summary.there},
                         {"folders", summary.folders}, {"conflicts", conflicts},
                         {"problems", problems}};
  return json_text(document);
}

std::string merge_text(const std::string& results, const MergeSummary& summary) {
  return fmt::format("{} in {}: {} added, {} there before, {} of runs taken\n",
                     plural(summary.shards, "shard"), results, plural(summary.added, "result"),
                     summary.there, plural(summary.folders, "folder"));
}

ExitCode merge(const MergeFlags& flags) {
  const MergeSummary summary = merge_shards(flags.results);
  write_output(flags.json ? merge_json(flags.results, summary)
                          : merge_text(flags.results, summary));
  flush_output();
  describe(summary.conflicts, summary.problems, write_notice);
  if (!summary.problems.empty()) return ExitCode::data;
  return summary.conflicts.empty() ? ExitCode::done : ExitCode::verification;
}

void add_merge_options(CLI::App& command, MergeFlags& flags) {
  argument(command, "DIR", flags.results, "Results folder: --results of reproduce --shard")
      ->required();
  add_json_flag(command, flags.json);
}

const Command registered_merge(
    {.name = "merge",
     .group = Group::paper,
     .summary = "Combine the shards of an experiment in their results folder",
     .examples = {"posattn reproduce value-range --shard 0/2 --results DIR",
                  "posattn reproduce value-range --shard 1/2 --results DIR", "posattn merge DIR"},
     .details = "Results of runs that ended in DIR/shards are copied to DIR. Shards are only read, "
                "so merging is safe while they train, and can be repeated. Where a run has two "
                "different results the first is kept and the exit code is 6. A shard that cannot "
                "be read is left out, and the exit code is 4."},
    add_merge_options, merge);

}  // namespace
}  // namespace posattn
