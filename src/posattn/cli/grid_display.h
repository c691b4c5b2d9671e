// The progress of a grid on standard error: one live line on a terminal, elsewhere a line every few
// seconds.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "posattn/experiments/grid_progress.h"

namespace posattn {

class GridDisplay {
 public:
  GridDisplay();

  void update(const GridProgress& progress);
  void notice(const std::string& line);
  void finish();  // draws the last state

 private:
  using Clock = std::chrono::steady_clock;

  void draw();

  bool live_;
  bool line_open_ = false;  // the cursor stands behind a live line
  std::optional<GridProgress> latest_;
  bool shown_ = false;  // a line of latest_ is written
  Clock::time_point drawn_;
};

// "  ████░░░░  12/200 runs  3400/60000 steps  512 steps/s  2 min 05 s left  1 diverged"; where that
// is wider than `columns`, without the steps, then without the bar.
std::string grid_line(const GridProgress& progress, int columns);

}  // namespace posattn
