// Settings of runs as Python gives them: names and values as `posattn train` reads them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "posattn/train.h"

namespace posattn::python {

using GivenSettings = std::vector<std::pair<std::string, std::string>>;

// What is given, else what the task suggests, else the default; with `from`, what that model is.
// Throws as set_field, take_start and take_hints do.
RunConfig config_of(const GivenSettings& given);

}  // namespace posattn::python
