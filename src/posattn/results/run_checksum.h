// What results.db keeps beside each run, so that a value that something changed later is noticed.
#pragma once

#include <string>

#include "posattn/results/results_database.h"

namespace posattn {

// Of everything recorded; the order of the measurements does not matter.
std::string checksum_of(const RunResult& result);

}  // namespace posattn
