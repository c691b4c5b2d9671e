#include "posattn/cli/grid_display.h"

#include <fmt/format.h>

#include "posattn/cli/progress.h"
#include "posattn/cli/terminal.h"

namespace posattn {
namespace {

constexpr int plain_columns = 120;

// Progress is a courtesy: a standard error that cannot be written to is no reason to stop.
void write_error_stream(const std::string& text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

std::string grid_line(const GridProgress& progress, bool bar, bool steps) {
  std::string text = "  ";
  if (bar && progress.steps > 0) text += progress_bar(progress.fraction) + "  ";
  text += fmt::format("{}/{} runs", progress.ended, progress.runs);
  if (steps) text += fmt::format("  {}/{} steps", progress.step, progress.steps);
  const double rate = progress.steps_per_second;
  if (rate > 0) text += fmt::format("  {:.{}f} steps/s", rate, rate < 10 ? 1 : 0);
  if (progress.ended < progress.runs && progress.seconds_left > 0) {
    text += "  " + duration_text(progress.seconds_left) + " left";
  }
  if (progress.diverged > 0) text += fmt::format("  {} diverged", progress.diverged);
  if (progress.failed > 0) text += fmt::format("  {} failed", progress.failed);
  return text;
}

}  // namespace

std::string grid_line(const GridProgress& progress, int columns) {
  for (const auto& [bar, steps] : {std::pair{true, true}, {true, false}, {false, false}}) {
    std::string text = grid_line(progress, bar, steps);
    if (display_width(text) <= columns) return text;
  }
  return cut_to(grid_line(progress, false, false), columns);
}

GridDisplay::GridDisplay() : live_(is_terminal(stderr)), drawn_(Clock::now()) {}

void GridDisplay::update(const GridProgress& progress) {
  latest_ = progress;
  shown_ = false;
  const Clock::time_point now = Clock::now();
  if (now - drawn_ < redraw_interval(live_)) {
    return;
  }
  drawn_ = now;
  draw();
}

void GridDisplay::draw() {
  if (!latest_) return;
  shown_ = true;
  if (live_) {
    write_error_stream("\r\x1b[2K" + grid_line(*latest_, terminal_columns(stderr) - 1));
    line_open_ = true;
  } else {
    write_error_stream(grid_line(*latest_, plain_columns) + "\n");
  }
}

void GridDisplay::notice(const std::string& line) {
  write_error_stream((line_open_ ? "\r\x1b[2K" : "") + line + "\n");
  line_open_ = false;
}

void GridDisplay::finish() {
  if (live_ || !shown_) draw();
  if (line_open_) write_error_stream("\n");
  line_open_ = false;
}

}  // namespace posattn
