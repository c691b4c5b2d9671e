// The results of single runs as text, one JSON object a line (OUTPUT_NAME/runs.jsonl next to an
// experiment's table): small enough to keep with the figures, and enough to make the database
// again. Each line ends with a checksum of its values.
#pragma once

#include <functional>

#include "posattn/results/results_database.h"

namespace posattn {

// Settings are those that differ from the defaults of `posattn train`.
std::string to_json_line(const RunResult& result);

// Throws Error(data), with the line, for anything but such lines: a key must be that of its
// settings, the run must have ended, its losses and accuracies must be possible, and the values
// those that were recorded.
std::vector<RunResult> run_results_from_text(std::string_view text, const std::string& name);

// Brings the runs of folder/*/runs.jsonl that the database does not have, or only as failed, into
// it; how many.
int64_t import_recorded_runs(const std::filesystem::path& folder, ResultsDatabase& database);

// Whether there is a database that holds something, a file to make it from, or a shard.
bool has_results(const std::filesystem::path& folder);
// Opens the results for reading, which never writes to the folder: the database with what recorded
// runs add to it (as files of others do that come into the folder) and then shards (merge.h), in
// memory where there is such. `notice` is told of conflicts and of shards that cannot be read.
ResultsDatabase open_results(const std::filesystem::path& folder,
                             const std::function<void(const std::string&)>& notice = {});

// The result of a run that ended. A run that did not end well has no losses and no tests, whatever
// its last epochs gave. Throws Error(data) where the folder's manifest does not tell.
RunResult read_result(const std::filesystem::path& run_folder, const std::string& key);

// Reads what the folder's manifest says.
RunResult result_of_manifest(const std::string& manifest, const std::filesystem::path& run_folder,
                             const std::string& key);

}  // namespace posattn
