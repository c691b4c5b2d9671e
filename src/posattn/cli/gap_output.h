// What `posattn gap` prints.
#pragma once

#include <string>
#include <vector>

#include "posattn/bounds/gap_measures.h"

namespace posattn {

std::string gap_text(const std::vector<bounds::GapRun>& runs);
std::string gap_json(const std::vector<bounds::GapRun>& runs);

}  // namespace posattn
