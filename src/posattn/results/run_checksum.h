// What results.db keeps with each run, so that a value that something changed later is noticed.
// Lines of runs.jsonl have a checksum of their own (recorded_runs.h).
#pragma once

#include <string>
#include <string_view>

#include "posattn/results/results_database.h"

namespace posattn {

// Of everything recorded; the order of the measurements does not matter.
std::string checksum_of(const RunResult& result);

// Whether a run that this version of posattn computed may stand there without: in a database that
// 0.1.0 began.
bool may_lack_checksum(std::string_view version);

}  // namespace posattn
