// Progress on standard error. That of a fleet: on a terminal one live line per architecture,
// elsewhere one line per architecture every few seconds.
#pragma once

#include <map>

#include "posattn/experiments/runner.h"
#include "posattn/training/fleet.h"

namespace posattn {

class ProgressDisplay {
 public:
  explicit ProgressDisplay(const std::vector<RunConfig>& configs);

  void update(const RunProgress& progress);  // a fleet's progress callback
  void finish();                             // draws the last state

 private:
  using Clock = std::chrono::steady_clock;

  struct Group {  // the runs of one architecture
    std::string name;
    size_t runs = 0;
    std::map<size_t, RunProgress> latest;  // by run
    std::map<size_t, int64_t> first_step;  // of this session; a resumed run does not start at 0
    Clock::time_point started, ended;
    bool drawn_finished = false;  // on a pipe, a finished group is written once
  };

  void draw(bool last);
  // The parts of a line in the order in which a narrow terminal loses them.
  enum class Part { bar, validation, runs, loss, none };
  std::string line(const Group& group, Part first_shown) const;
  std::string live_line(const Group& group) const;  // as much as the terminal has columns for

  std::vector<Group> groups_;
  std::vector<size_t> group_of_run_;
  size_t name_width_ = 0;
  bool live_;
  int lines_drawn_ = 0;
  Clock::time_point drawn_;
};

// "42 s", "3 min 20 s", "5 h 07 min"
std::string duration_text(double seconds);

std::string progress_bar(double share);

// Between two drawings, on a terminal (live) and elsewhere.
constexpr std::chrono::milliseconds redraw_interval(bool live) {
  return std::chrono::milliseconds(live ? 100 : 5000);
}

// The first `columns` characters of UTF-8 text: a live line must not wrap.
std::string cut_to(const std::string& text, int columns);

// The progress of a grid: one live line on a terminal, elsewhere a line every few seconds.
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
