// posattn merge
#include "posattn/experiments/merge.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "posattn/cli/commands.h"
#include "posattn/cli/terminal.h"

namespace posattn {
namespace {

using Json = nlohmann::ordered_json;

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
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string merge_text(const std::string& results, const MergeSummary& summary) {
  const auto counted = [](int64_t number, const char* word) {
    return fmt::format("{} {}{}", number, word, number == 1 ? "" : "s");
  };
  return fmt::format("{} in {}: {} added, {} there before, {} of runs taken\n",
                     counted(summary.shards, "shard"), results, counted(summary.added, "result"),
                     summary.there, counted(summary.folders, "folder"));
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

}  // namespace

void add_merge(CommandLine& command_line) {
  auto flags = std::make_shared<MergeFlags>();
  CLI::App& command = add_command(
      command_line,
      {.name = "merge",
       .description = "Bring the shards of an experiment together in their results folder",
       .examples = {"posattn reproduce value-range --shard 0/2 --results DIR",
                    "posattn reproduce value-range --shard 1/2 --results DIR", "posattn merge DIR"},
       .details =
           "Takes what has ended in DIR/shards and changes nothing there; it may be called while\n"
           "shards train, and again. Of a run with two different results the first is kept, and\n"
           "the exit code is 6; it is 4 where a shard could not be read. All else is merged."},
      [flags] { return merge(*flags); });
  command.add_option("DIR", flags->results, "Results folder: --results of reproduce --shard")
      ->required()
      ->type_name("");
  add_json_flag(command, flags->json);
}

}  // namespace posattn
