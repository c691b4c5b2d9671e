// Commands as text that a shell reads back.
#pragma once

#include <string>
#include <vector>

namespace posattn {

// The arguments as a shell would need them to be typed.
std::string shell_command(const std::vector<std::string>& arguments);

}  // namespace posattn
