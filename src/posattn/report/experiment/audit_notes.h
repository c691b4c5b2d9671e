// What a reader of the published results should know, with our own numbers where there are some.
#pragma once

#include <string>
#include <vector>

#include "posattn/report/experiment/results.h"

namespace posattn {

std::string audit_notes(const std::vector<ExperimentResults>& all);  // HTML

}  // namespace posattn
