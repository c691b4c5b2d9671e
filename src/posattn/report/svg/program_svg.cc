#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "posattn/base/error.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/report/drawn_rounds.h"
#include "posattn/report/markup.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {
namespace {

constexpr int most_processors = 128, most_rounds = 200;
constexpr int left = 50, right = 40, head_space = 34, line_height = 19;
constexpr int widest = 720;  // as the figures; a wider program goes on in the next row
constexpr double small_print = 13;
constexpr int lane_width = 14;  // of a comparator
constexpr int arrow_kinds = 5;  // told apart

// The style of the arrows of a bundle by its number in the round.
int arrow_style(int number) { return variant_style("compiled", number % arrow_kinds); }

class ProgramDrawing {
 public:
  explicit ProgramDrawing(const StaticProgram& program) : program_(program) {
    pitch_ = program.processors <= 20 ? 28 : program.processors <= 48 ? 16 : 9;
  }

  std::string draw() {
    const std::string title = fmt::format("{}, {} processors, {} rounds", program_.name,
                                          program_.processors, program_.rounds.size());
    int y = 26;
    text(12, y, title, "font-weight=\"bold\"");
    std::vector<Column> columns = measure();
    const auto says = [&](bool comparators, const std::string& words) {
      const auto is_so = [](const Column& column) { return !column.comparators.empty(); };
      if (std::ranges::count_if(columns, is_so) == (comparators ? 0 : std::ssize(columns))) return;
      y += 22;
      text(12, y, words);
    };
    says(true, "A line joins two processors that put their numbers in order.");
    says(false, "An arrow leads from the processor that is read to the one that reads it.");
    y += 8;
    size_t first = 0;
    while (first < columns.size()) {
      int x = left;
      size_t end = first;
      while (end < columns.size() && (end == first || x + columns[end].width + right <= widest)) {
        x += columns[end++].width;
      }
      y = draw_row(std::span(columns).subspan(first, end - first), first, y);
      first = end;
    }
    y = draw_legend(y + 8);
    const int width = width_, height = y + 10;
    svg_ = arrow_heads() + svg_;
    const std::string paper =
        fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", width, height, light_paper);
    return fmt::format(
               R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" )"
               R"(font-family="sans-serif" font-size="{2}" role="img">)"
               "\n<title>{3}</title>\n<desc>Who reads from whom in every round: a line per "
               "processor, a "
               "column per round, an arrow from the processor that is read to the one that reads "
               "it, a vertical line where two processors put their numbers in order.</desc>\n",
               width, height, drawing_text_size, escape_markup(title)) +
           dark_mode_style(paper + svg_ + " fill=\"#222222\"") + "<g fill=\"#222222\">\n" + paper +
           svg_ + "</g>\n</svg>\n";
  }

 private:
  // A round: its width, and what it does in words.
  struct Column {
    int width = 0;
    std::vector<std::string> updates = {};
    std::vector<Comparator> comparators = {};  // of a round of nothing else
    std::vector<int> lanes = {};               // of each, so that none lies on another
  };

  std::vector<Column> measure() const {
    std::vector<Column> columns;
    for (const Round& round : program_.rounds) {
      if (const auto comparators = comparators_of(round, program_.processors);
          !comparators.empty()) {
        columns.push_back(comparator_column(comparators));
        continue;
      }
      Column column{100, describe_updates(program_, round, 46)};
      if (column.updates.size() > 6) {
        column.updates.resize(5);
        column.updates.emplace_back("…");
      }
      for (const std::string& line : column.updates) {
        column.width =
            std::max(column.width, static_cast<int>(text_width(line, 1.1 * small_print)) + 16);
      }
      columns.push_back(std::move(column));
    }
    return columns;
  }

  // Each takes the first lane in which nothing lies between its two ends.
  static Column comparator_column(const std::vector<Comparator>& comparators) {
    Column column{.comparators = comparators};
    std::vector<std::vector<std::pair<int, int>>> taken;
    for (const Comparator& comparator : comparators) {
      const auto [first, last] = std::minmax(comparator.smaller, comparator.larger);
      const auto is_free = [&, a = first, b = last](const auto& lane) {
        return std::ranges::none_of(
            lane, [&](const auto& other) { return a <= other.second && other.first <= b; });
      };
      auto lane = std::ranges::find_if(taken, is_free);
      if (lane == taken.end()) lane = taken.insert(lane, {{}});
      lane->emplace_back(first, last);
      column.lanes.push_back(static_cast<int>(std::distance(taken.begin(), lane)));
    }
    column.width = std::max(78, lane_width * static_cast<int>(taken.size()) + 28);
    return column;
  }

  int y(int processor) const { return top_ + processor * pitch_ + pitch_ / 2; }

  void text(int x, int at_y, const std::string& content, const std::string& attributes = {}) {
    svg_ += fmt::format("<text x=\"{}\" y=\"{}\"{}{}>{}</text>\n", x, at_y,
                        attributes.empty() ? "" : " ", attributes, escape_markup(content));
  }

  // Draws some rounds side by side, from `start` down; returns where they end.
  int draw_row(std::span<const Column> columns, size_t first, int start) {
    top_ = start + head_space;
    int x_end = left;
    size_t most_lines = 0;
    for (const Column& column : columns) {
      x_end += column.width;
      most_lines = std::max(most_lines, column.updates.size());
    }
    for (int i = 0; i < program_.processors; ++i) {
      svg_ +=
          fmt::format("<line x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{1}\" stroke=\"#cccccc\"/>\n",
                      left - 14, y(i), x_end + 10);
      if (pitch_ >= 16 || i % 8 == 0) {
        text(left - 20, y(i) + 5, std::to_string(i), "text-anchor=\"end\"");
      }
    }
    int x = left;
    for (size_t k = 0; k < columns.size(); ++k) {
      draw_round(first + k, columns[k], x);
      x += columns[k].width;
    }
    const bool last = first + columns.size() == program_.rounds.size();
    if (last) text(x_end + 14, y(0) + 5, program_.words[program_.outputs.front()].name);
    width_ = std::max(width_, x_end + right);
    return top_ + program_.processors * pitch_ +
           static_cast<int>(most_lines + (most_lines > 0)) * line_height + 12;
  }

  void draw_round(size_t r, const Column& column, int x) {
    const Round& round = program_.rounds[r];
    const int from = x + 8, to = x + column.width - 8, middle = (from + to) / 2;
    const int bottom = top_ + program_.processors * pitch_;
    text(middle, top_ - 6, fmt::format("round {}", r),
         "text-anchor=\"middle\" font-weight=\"bold\"");
    svg_ += fmt::format("<line x1=\"{0}\" y1=\"{1}\" x2=\"{0}\" y2=\"{2}\" stroke=\"#eeeeee\"/>\n",
                        x + column.width, top_, bottom);
    for (size_t k = 0; k < column.comparators.size(); ++k) {
      const int lanes = *std::ranges::max_element(column.lanes) + 1;
      const int at = middle + (2 * column.lanes[k] - lanes + 1) * lane_width / 2;
      draw_comparator(column.comparators[k], at);
    }
    if (!column.comparators.empty()) return;
    const std::vector<RouteBundle> bundles = route_bundles(round);
    for (size_t k = 0; k < bundles.size(); ++k) {
      for (const std::string& name : bundles[k].names) reads(k).insert(name);
      draw_route(*bundles[k].route, from, to, static_cast<int>(k),
                 static_cast<int>(bundles.size()));
    }
    int line = bottom + line_height;
    const std::string small = fmt::format("text-anchor=\"middle\" font-size=\"{}\"", small_print);
    for (const std::string& update : column.updates) {
      text(middle, line, update, small);
      line += line_height;
    }
    if (!round.lines.empty()) {
      text(middle, line, fmt::format("line {}", fmt::join(round.lines, ", ")),
           small + " fill=\"#555555\"");
    }
  }

  void draw_comparator(const Comparator& comparator, int x) {
    const bool upwards = comparator.larger < comparator.smaller;
    comparators_.insert(upwards);
    comparator_line(x, y(comparator.smaller), x, y(comparator.larger), upwards);
  }

  // A dot at both ends; a head in place of the dot where the larger number goes up.
  void comparator_line(int x1, int y1, int x2, int y2, bool upwards) {
    const std::string colour = style_colour(arrow_style(0));
    if (upwards) heads_.insert({0, false});
    svg_ += fmt::format(
        "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" "
        "stroke-width=\"1.6\"{}/>\n",
        x1, y1, x2, y2, colour, upwards ? " marker-end=\"url(#head0)\"" : "");
    dot(x1, y1, colour);
    if (!upwards) dot(x2, y2, colour);
  }

  void dot(int x, int at_y, const std::string& colour) {
    svg_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"3.2\" fill=\"{}\"/>\n", x, at_y, colour);
  }

  void draw_route(const Route& route, int from, int to, int number, int of) {
    const int shift = 2 * number;  // so that arrows between the same two processors stay apart
    for (int i = 0; i < program_.processors; ++i) {
      std::vector<std::pair<int32_t, double>> read;
      if (route.is_weighted()) {
        read = route.weighted[i];
        weighted_ = true;
      } else if (route.sources[i] < program_.processors) {
        read = {{route.sources[i], 1.0}};
      }
      if (read.empty()) ring(to - 6 - 8 * (of - 1 - number), y(i), number);
      for (const auto& [j, weight] : read) {
        if (j == i && !route.is_weighted()) {  // it reads itself: the line goes on
          reads_itself_ = true;
          continue;
        }
        const int middle = from + (to - from) / 2;
        arrow(fmt::format("M{0},{1} C{2},{1} {2},{3} {4},{3}", from, y(j) + shift, middle,
                          y(i) + shift, to),
              number, route.is_weighted() ? std::min(1.6, 0.4 + std::abs(weight)) : 1.4,
              weight < 0);
      }
    }
  }

  void ring(int x, int at_y, int number) {
    has_ring_ = true;
    svg_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"2.6\" fill=\"{}\" stroke=\"{}\"/>\n", x,
                        at_y, light_paper, style_colour(arrow_style(number)));
  }

  void arrow(const std::string& path, int number, double width, bool negative) {
    const char* dash = number == 0   ? ""
                       : number == 1 ? "stroke-dasharray=\"5,3\" "
                                     : "stroke-dasharray=\"2,3\" ";
    const int head = number % arrow_kinds;
    heads_.insert({head, negative});
    svg_ += fmt::format(
        "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.2f}\" "
        "stroke-opacity=\"0.85\" "
        "{}marker-end=\"url(#{}{})\"/>\n",
        path, style_colour(arrow_style(number)), width, dash, negative ? "open" : "head", head);
  }

  // Filled, and open for negative weights.
  std::string arrow_heads() const {
    std::string heads = "<defs>\n";
    for (const auto& [number, open] : heads_) {
      const std::string colour = style_colour(arrow_style(number));
      heads += fmt::format(
          "<marker id=\"{0}{1}\" viewBox=\"-1 -1 10 10\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
          "markerHeight=\"7\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0,0 L8,4 "
          "L0,8 z\" fill=\"{2}\" stroke=\"{3}\"/>"
          "</marker>\n",
          open ? "open" : "head", number, open ? light_paper : colour, colour);
    }
    return heads + "</defs>\n";
  }

  // What colours, dashes and signs mean, of those that occur; returns where it ends.
  int draw_legend(int at_y) {
    constexpr int sample_end = 52, words = 62;
    const auto row = [&](const std::string& words_of_it) {
      at_y += line_height;
      text(words, at_y, words_of_it);
      return at_y - 5;  // where its sign lies
    };
    const auto sample = [&](int y_of_sign, int number, double width, bool negative) {
      arrow(fmt::format("M12,{0} L{1},{0}", y_of_sign, sample_end), number, width, negative);
    };
    for (const bool upwards : comparators_) {
      const int y_of_sign = row(upwards ? "the larger number goes where the head points"
                                        : "the smaller number goes up, the larger one down");
      comparator_line(27, y_of_sign + 6, 27, y_of_sign - 6, upwards);
    }
    for (size_t k = 0; k < reads_.size(); ++k) {
      std::vector<std::string> names(reads_[k].begin(), reads_[k].end());
      if (names.size() > 4) {
        names.resize(4);
        names.emplace_back("…");
      }
      sample(row(fmt::format("reads {}", fmt::join(names, ", "))), static_cast<int>(k), 1.4, false);
    }
    if (weighted_) {
      sample(row("reads a sum; thicker: a larger weight"), 0, 1.6, false);
      if (std::ranges::any_of(heads_, [](const auto& head) { return head.second; })) {
        sample(row("open head: a negative weight"), 0, 1.6, true);
      }
    }
    if (has_ring_) ring(32, row("reads nothing: a zero"), 0);
    if (reads_itself_) {
      const int y_of_sign = row("no arrow: it reads itself");
      svg_ += fmt::format("<line x1=\"12\" y1=\"{0}\" x2=\"{1}\" y2=\"{0}\" stroke=\"#cccccc\"/>\n",
                          y_of_sign, sample_end);
    }
    return at_y;
  }

  std::set<std::string>& reads(size_t number) {
    if (reads_.size() <= number) reads_.resize(number + 1);
    return reads_[number];
  }

  const StaticProgram& program_;
  int pitch_, top_ = 0, width_ = 560;  // of the first lines
  std::string svg_;
  // What the legend has to explain.
  std::vector<std::set<std::string>> reads_;  // names by the number of a bundle in its round
  std::set<std::pair<int, bool>> heads_;      // number of the bundle's shade, open
  std::set<bool> comparators_;                // whether the larger number goes up
  bool weighted_ = false, has_ring_ = false, reads_itself_ = false;
};

}  // namespace

std::string program_svg(const StaticProgram& program) {
  if (program.sends()) {
    throw Error(ExitCode::usage,
                fmt::format("a picture of '{}', whose messages go where data says", program.name),
                "a program in which who reads from whom is fixed", "route its messages first");
  }
  if (program.processors > most_processors || program.rounds.size() > most_rounds) {
    throw Error(ExitCode::usage,
                fmt::format("a diagram of {} processors and {} rounds", program.processors,
                            program.rounds.size()),
                fmt::format("at most {} and {}", most_processors, most_rounds),
                "a smaller --length shows the same pattern");
  }
  return ProgramDrawing(program).draw();
}

}  // namespace posattn
