// Runs another program to its end, without a shell and with nothing on its standard input.
//
// posix_spawn starts it: that copies nothing of this process, so other threads may run meanwhile.
#pragma once

#include <string>
#include <vector>

namespace posattn {

struct CommandEnd {
  std::string output, messages;  // what it wrote to standard output and standard error
  std::string
      problem;  // "ended with exit code 3", "was killed by signal 9 (Killed)"; empty after 0
};

// The program is arguments[0], found on the PATH. Throws Error(failed) when it cannot be started.
CommandEnd run_to_end(const std::vector<std::string>& arguments);

// Its output; what it writes to standard error goes to ours. Throws Error(failed) when the program
// cannot be started or fails.
std::string run_command(const std::vector<std::string>& arguments);

// The arguments as a shell would need them to be typed.
std::string shell_command(const std::vector<std::string>& arguments);

}  // namespace posattn
