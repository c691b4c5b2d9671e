// What `posattn gap` prints.
#pragma once

#include <string>
#include <vector>

#include "posattn/bounds/gap_measures.h"

namespace posattn {

// `measures` are the runs' values.
std::string gap_text(const std::vector<bounds::GapRun>& runs,
                     const std::vector<bounds::GapMeasure>& measures);
std::string gap_json(const std::vector<bounds::GapRun>& runs,
                     const std::vector<bounds::GapMeasure>& measures);

}  // namespace posattn
