#include "posattn/report/svg/program_svg.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "posattn/base/error.h"
#include "posattn/programs/form/describe.h"
#include "posattn/report/markup.h"
#include "posattn/report/plot/figure.h"

namespace posattn {
namespace {

constexpr int most_processors = 128, most_rounds = 200;
constexpr int left = 78, right = 30, head_space = 64, line_height = 15;
constexpr int least_width = 660;  // for the caption
constexpr int character = 7;      // width of a letter of the small print, with room to spare

class Drawing {
 public:
  explicit Drawing(const StaticProgram& program) : program_(program) {
    pitch_ = program.processors <= 20 ? 28 : program.processors <= 48 ? 16 : 9;
    size_t most_lines = 0;
    int x = left;
    for (const Round& round : program.rounds) {
      std::vector<std::string> lines;
      for (const std::string& update : describe_updates(program, round, 46))
        lines.push_back(update);
      if (lines.size() > 6) {
        lines.resize(5);
        lines.emplace_back("…");
      }
      size_t longest = 8;
      for (const std::string& line : lines) longest = std::max(longest, line.size());
      most_lines = std::max(most_lines, lines.size());
      starts_.push_back(x);
      x += std::max(92, static_cast<int>(longest) * character + 16);
      updates_.push_back(std::move(lines));
    }
    starts_.push_back(x);
    bottom_ = head_space + program.processors * pitch_;
    width_ = std::max(x + right + 60, least_width);
    height_ = bottom_ + 30 + static_cast<int>(most_lines + 1) * line_height + 24;
  }

  std::string draw() {
    const std::string title = fmt::format("{}, {} processors, {} rounds", program_.name,
                                          program_.processors, program_.rounds.size());
    svg_ = fmt::format(
        R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
        R"(font-family="Helvetica, Arial, sans-serif" font-size="12" role="img">)"
        "<title>{2}</title><rect width=\"100%\" height=\"100%\" fill=\"white\"/>",
        width_, height_, escape_markup(title));
    arrow_heads();
    text(left - 60, 22, title, "font-size=\"15\"");
    text(left - 60, 40,
         "an arrow: the processor at its tail is heard by the one at its head; "
         "a ring: it hears nothing, a zero");
    for (int i = 0; i < program_.processors; ++i) {
      svg_ += fmt::format(R"(<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="#cccccc"/>)", left - 14,
                          y(i), starts_.back() + 14, y(i));
      if (pitch_ >= 12 || i % 8 == 0) {
        text(left - 20, y(i) + 4, std::to_string(i), "text-anchor=\"end\"");
      }
    }
    for (size_t r = 0; r < program_.rounds.size(); ++r) draw_round(r);
    text(starts_.back() + 20, y(0) + 4, program_.words[program_.output].name);
    return svg_ + "</svg>\n";
  }

 private:
  int y(int processor) const { return head_space + processor * pitch_ + pitch_ / 2; }

  void text(int x, int at_y, const std::string& content, const std::string& attributes = {}) {
    svg_ += fmt::format(R"(<text x="{}" y="{}" {}>{}</text>)", x, at_y, attributes,
                        escape_markup(content));
  }

  void arrow_heads() {
    svg_ += "<defs>";
    for (int style = 0; style < 8; ++style) {
      svg_ += fmt::format(
          R"(<marker id="head{0}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" )"
          R"(markerHeight="6" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{1}"/></marker>)",
          style, style_colour(style));
    }
    svg_ += "</defs>";
  }

  void draw_round(size_t r) {
    const Round& round = program_.rounds[r];
    const int from = starts_[r] + 8, to = starts_[r + 1] - 8;
    text((from + to) / 2, head_space - 6, fmt::format("round {}", r),
         "text-anchor=\"middle\" font-weight=\"bold\"");
    svg_ += fmt::format(R"(<line x1="{0}" y1="{1}" x2="{0}" y2="{2}" stroke="#eeeeee"/>)",
                        starts_[r + 1], head_space, bottom_);
    // Receives with one route are one bundle of arrows.
    std::vector<const Route*> routes;
    for (const Receive& receive : round.receives) {
      if (std::ranges::none_of(routes,
                               [&](const Route* other) { return *other == receive.route; })) {
        routes.push_back(&receive.route);
      }
    }
    for (size_t k = 0; k < routes.size(); ++k) {
      draw_route(*routes[k], from, to, static_cast<int>(k), static_cast<int>(routes.size()));
    }
    int line = bottom_ + 22;
    for (const std::string& update : updates_[r]) {
      text((from + to) / 2, line, update, "text-anchor=\"middle\" font-size=\"11\"");
      line += line_height;
    }
    if (!round.lines.empty()) {
      text((from + to) / 2, line, fmt::format("line {}", fmt::join(round.lines, ", ")),
           "text-anchor=\"middle\" font-size=\"10\" fill=\"#777777\"");
    }
  }

  void draw_route(const Route& route, int from, int to, int number, int of) {
    const int style = number % 8;
    const std::string dash = number == 0 ? "" : number == 1 ? "5,3" : "2,3";
    const int aside = 2 * number;  // so that arrows between the same two processors stay apart
    for (int i = 0; i < program_.processors; ++i) {
      std::vector<std::pair<int32_t, double>> heard;
      if (route.is_weighted()) {
        heard = route.weighted[i];
      } else if (route.sources[i] < program_.processors) {
        heard = {{route.sources[i], 1.0}};
      }
      if (heard.empty()) {
        svg_ += fmt::format(R"(<circle cx="{}" cy="{}" r="2.6" fill="white" stroke="{}"/>)",
                            to - 6 - 8 * (of - 1 - number), y(i), style_colour(style));
      }
      for (const auto& [j, weight] : heard) {
        if (j == i && !route.is_weighted()) continue;  // it hears itself: the line goes on
        const double size = route.is_weighted() ? std::min(1.6, 0.4 + std::abs(weight)) : 1.4;
        svg_ += fmt::format(
            R"(<path d="M{0},{1} C{2},{1} {3},{4} {5},{4}" fill="none" stroke="{6}" )"
            R"-(stroke-width="{7:.2f}" stroke-opacity="0.85" {8}marker-end="url(#head{9})"/>)-",
            from, y(j) + aside, from + (to - from) / 2, from + (to - from) / 2, y(i) + aside, to,
            style_colour(style), size,
            dash.empty() ? "" : fmt::format(R"(stroke-dasharray="{}" )", dash), style);
      }
    }
  }

  const StaticProgram& program_;
  int pitch_, bottom_, width_, height_;
  std::vector<int> starts_;  // of each round's column, and the end of the last
  std::vector<std::vector<std::string>> updates_;
  std::string svg_;
};

}  // namespace

std::string program_svg(const StaticProgram& program) {
  if (program.processors > most_processors || program.rounds.size() > most_rounds) {
    throw Error(ExitCode::usage,
                fmt::format("a diagram of {} processors and {} rounds", program.processors,
                            program.rounds.size()),
                fmt::format("at most {} and {}", most_processors, most_rounds),
                "a smaller --length shows the same pattern");
  }
  return Drawing(program).draw();
}

}  // namespace posattn
