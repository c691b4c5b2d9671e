// A process that this one starts and talks to, line by line, over its standard input and output.
//
// It is started by posix_spawn, which copies nothing of this process: safe beside its threads, and
// beside memory that a network card knows (MPI).
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "posattn/base/line_reader.h"

namespace posattn {

class ChildProcess {
 public:
  // The program is arguments[0], a path. Throws Error(failed) when it cannot be started.
  ChildProcess(const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment);
  ~ChildProcess();  // closes its input and waits for its end
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // A child that has ended hears nothing; that shows in reading.
  void write(std::string_view line);
  std::vector<std::string> read(int milliseconds) { return output_.read(milliseconds); }
  bool closed() const { return output_.ended(); }  // its output

  // Waits for its end: "was killed by signal 9 (Killed)", "ended with exit code 3".
  std::string wait();

 private:
  pid_t process_ = -1;
  int input_ = -1, output_descriptor_ = -1;
  LineReader output_{-1};
};

}  // namespace posattn
