// What files of older versions mean by the settings that they do not name.
#pragma once

#include <string_view>

#include "posattn/training/run_config.h"

namespace posattn {

// The settings of 0.1.0 and their defaults there, as one JSON object. Never changes: recorded runs
// name only what differs from it.
std::string_view first_settings();

// Every setting at the default that it came with: where reading a recorded run starts from.
RunConfig settings_of_files();

}  // namespace posattn
