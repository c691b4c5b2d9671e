// A rank's child process: started when there is something to train, and anew after it was killed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posattn/base/child_process.h"

namespace posattn {

class Supervisor {
 public:
  // How to start the child, which speaks as words.h says.
  Supervisor(std::vector<std::string> arguments, std::vector<std::string> environment)
      : arguments_(std::move(arguments)), environment_(std::move(environment)) {}

  void order(std::string_view line);  // for the child
  void stop();                        // likewise; a child that does not run needs none
  // What it reports, or that it is lost; waits up to `milliseconds` for something.
  std::vector<std::string> reports(int milliseconds);

 private:
  std::vector<std::string> arguments_, environment_;
  std::optional<ChildProcess> child_;
  int64_t orders_ = 0;  // so far, to all its children
};

}  // namespace posattn
