#include "posattn/cli/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"
#include "posattn/evaluation/summary.h"

namespace posattn {
namespace {

constexpr int bar_width = 20;

// Failing to write progress to standard error must not stop the work.
void write_error_stream(const std::string& text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

constexpr int plain_columns = 120;

// "  512 steps/s  2 min 05 s left  1 diverged  1 failed", as far as there is any of it.
std::string line_end(double rate, double seconds_left, int64_t diverged, int64_t failed) {
  std::string text;
  if (rate > 0) text += fmt::format("  {:.{}f} steps/s", rate, rate < 10 ? 1 : 0);
  if (seconds_left > 0) text += "  " + duration_text(seconds_left) + " left";
  if (diverged > 0) text += fmt::format("  {} diverged", diverged);
  if (failed > 0) text += fmt::format("  {} failed", failed);
  return text;
}

std::string grid_line(const GridProgress& progress, bool bar, bool steps) {
  std::string text = "  ";
  if (bar && progress.steps > 0) text += progress_bar(progress.fraction) + "  ";
  text += fmt::format("{}/{} runs", progress.ended, progress.runs);
  if (steps) text += fmt::format("  {}/{} steps", progress.step, progress.steps);
  return text + line_end(progress.steps_per_second,
                         progress.ended < progress.runs ? progress.seconds_left : 0,
                         progress.diverged, progress.failed);
}

}  // namespace

std::string progress_bar(double share) {
  const int filled = static_cast<int>(std::clamp(share, 0.0, 1.0) * bar_width);
  std::string text;
  for (int i = 0; i < bar_width; ++i) text += i < filled ? "█" : "░";
  return text;
}

std::string cut_to(const std::string& text, int columns) {
  int width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U && ++width > columns) {
      return text.substr(0, i);
    }
  }
  return text;
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::lround(std::clamp(seconds, 0.0, 1e9)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

ProgressDisplay::ProgressDisplay(const std::vector<RunConfig>& configs)
    : live_(is_terminal(stderr)), drawn_(Clock::now()) {
  for (const RunConfig& config : configs) {
    auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& known) {
      return known.name == config.architecture;
    });
    if (group == groups_.end()) {
      group = groups_.emplace(groups_.end());
      group->name = config.architecture;
    }
    ++group->runs;
    name_width_ = std::max(name_width_, group->name.size());
    group_of_run_.push_back(static_cast<size_t>(group - groups_.begin()));
  }
}

void ProgressDisplay::update(const RunProgress& progress) {
  Group& group = groups_[group_of_run_[progress.run]];
  const Clock::time_point now = Clock::now();
  if (group.latest.empty()) group.started = now;
  group.ended = now;
  group.first_step.try_emplace(progress.run, progress.step);
  group.latest[progress.run] = progress;
  if (now - drawn_ >= redraw_interval(live_)) {
    draw(false);
    drawn_ = now;
  }
}

void ProgressDisplay::finish() { draw(true); }

std::string ProgressDisplay::line(const Group& group, Part first_shown) const {
  int64_t done = 0, total = 0, given_up = 0, this_session = 0, steps_of_run = 0;
  size_t ended = 0, diverged = 0, failed = 0;
  double reported_rate = 0;
  std::vector<double> train, validation;
  for (const auto& [run, progress] : group.latest) {
    steps_of_run = progress.steps;
    total += progress.steps;
    const bool running = progress.status == RunStatus::running;
    done += progress.step;
    if (!running) given_up += progress.steps - progress.step;  // will not be done any more
    this_session += progress.step - group.first_step.at(run);
    if (!running) ++ended;
    if (progress.status == RunStatus::diverged) ++diverged;
    if (progress.status == RunStatus::failed) ++failed;
    if (running) reported_rate += progress.steps_per_second;
    if (progress.status == RunStatus::diverged) continue;
    if (!std::isnan(progress.train_loss)) train.push_back(progress.train_loss);
    if (progress.validation_loss) validation.push_back(*progress.validation_loss);
  }
  total += steps_of_run * static_cast<int64_t>(group.runs - group.latest.size());
  const double elapsed = std::chrono::duration<double>(group.ended - group.started).count();
  const double rate =
      this_session > 0 && elapsed > 0 ? static_cast<double>(this_session) / elapsed : reported_rate;
  const int64_t left = total - done - given_up;
  std::string text = fmt::format("  {:<{}}  ", group.name, name_width_);
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
  if (first_shown <= Part::bar) text += progress_bar(share) + "  ";
  text += fmt::format("{}/{} steps", done, total);
  if (group.runs > 1 && first_shown <= Part::runs) text += fmt::format(" of {} runs", group.runs);
  if (!train.empty() && first_shown <= Part::loss) {
    text += "  loss " + short_number(spread_of(train).median);
  }
  if (!validation.empty() && first_shown <= Part::validation) {
    text += "  validation " + short_number(spread_of(validation).median);
  }
  const bool unfinished = ended < group.runs && rate > 0;
  return text + line_end(rate, unfinished ? static_cast<double>(left) / rate : 0, diverged, failed);
}

std::string ProgressDisplay::live_line(const Group& group) const {
  const int columns = terminal_columns(stderr) - 1;
  for (const Part part : {Part::bar, Part::validation, Part::runs, Part::loss}) {
    std::string text = line(group, part);
    if (display_width(text) <= columns) return text;
  }
  return cut_to(line(group, Part::none), columns);
}

void ProgressDisplay::draw(bool last) {
  std::string text;
  if (live_ && lines_drawn_ > 0) text += fmt::format("\x1b[{}A", lines_drawn_);
  int lines = 0;
  for (Group& group : groups_) {
    if (group.latest.empty()) {
      if (!live_ || last) continue;  // at the end: none of its runs began
      text += fmt::format("\x1b[2K  {:<{}}  waiting\n", group.name, name_width_);
    } else if (live_) {
      text += "\x1b[2K" + live_line(group) + "\n";
    } else if (!group.drawn_finished) {
      group.drawn_finished =
          last || (group.latest.size() == group.runs &&
                   std::none_of(group.latest.begin(), group.latest.end(), [](const auto& entry) {
                     return entry.second.status == RunStatus::running;
                   }));
      text += line(group, Part::validation) + "\n";
    } else {
      continue;
    }
    ++lines;
  }
  lines_drawn_ = lines;
  write_error_stream(text);
}

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
