// Whole lines from a pipe, as they come.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace posattn {

class LineReader {
 public:
  explicit LineReader(int descriptor) : descriptor_(descriptor) {}

  // The lines that have come, without their ends; waits up to `milliseconds` for something to come.
  // A last line without its end is dropped: whoever wrote it was killed.
  std::vector<std::string> read(int milliseconds);
  bool ended() const { return ended_; }  // the other side is closed

 private:
  int descriptor_;
  bool ended_ = false;
  std::string begun_;
};

// The line and its end, whole; whether that could be done.
bool write_line(int descriptor, std::string_view line);

}  // namespace posattn
