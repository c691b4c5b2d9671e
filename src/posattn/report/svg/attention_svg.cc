#include "posattn/report/svg/attention_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <stdexcept>

#include "posattn/report/markup.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {
namespace {

constexpr int most_numbers = 20;  // cells per side up to which each shows its number
constexpr int shades = 32;        // told apart
constexpr int most_cells = 64;    // per side of a map, so that the drawing stays small
constexpr int text_height = 18;
constexpr int gap = 10;
constexpr int least_width = 320;  // for title and legend

// The sizes of one map. Two heads, as the paper's models have, fit into the width of a phone,
// unless every node shows its name.
struct MapLayout {
  int side = 134, label_space = 28, heading_space = 42;
  bool every_name = false;  // at every cell
  bool upright = false;     // names above the columns, which are wider than a cell
  int pitch_x() const { return side + label_space + gap; }
  int pitch_y() const { return side + heading_space + gap; }
};

MapLayout layout_of(const AttentionMaps& maps, int cells) {
  MapLayout layout;
  if (maps.names.empty() || cells != maps.nodes) return layout;
  double widest = 0;
  for (int node = 0; node < maps.nodes; ++node) {
    widest = std::max(widest, text_width(maps.name(node), drawing_text_size));
  }
  constexpr int least_cell = 15;  // a line of text
  layout.every_name = true;
  layout.side = std::max(layout.side, least_cell * cells);
  layout.upright = widest > static_cast<double>(layout.side) / cells;
  layout.label_space = std::max(layout.label_space, static_cast<int>(widest) + 8);
  if (layout.upright) layout.heading_space = static_cast<int>(widest) + 34;
  return layout;
}

// Grey, as hues mean architectures: from near the paper to far from it. No grey of the axes and
// frames is among them, which have other counterparts on dark paper.
struct Colour {
  double red, green, blue;
};
using Scale = std::array<Colour, 2>;
constexpr Scale light_scale{{{247, 249, 252}, {22, 26, 33}}};
constexpr Scale dark_scale{{{29, 34, 41}, {232, 238, 246}}};
// Of weights below 0: a red that no architecture has.
constexpr Scale light_negative{{{247, 249, 252}, {150, 16, 60}}};
constexpr Scale dark_negative{{{29, 34, 41}, {255, 128, 150}}};

std::string colour_at(const Scale& scale, double share) {
  const double at = share * (scale.size() - 1);
  const auto below = std::min(static_cast<size_t>(at), scale.size() - 2);
  const double part = at - static_cast<double>(below);
  const auto mix = [&](double Colour::*channel) {
    return std::lround(scale[below].*channel * (1 - part) + scale[below + 1].*channel * part);
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(&Colour::red), mix(&Colour::green),
                     mix(&Colour::blue));
}

// The nearest of the shades, on light paper.
std::string colour_at(double share) {
  if (!std::isfinite(share)) return "#bbbbbb";
  return colour_at(share < 0 ? light_negative : light_scale,
                   std::round(std::clamp(std::abs(share), 0.0, 1.0) * shades) / shades);
}

std::vector<ThemedColour> themed_shades() {
  std::vector<ThemedColour> colours;
  for (int shade = 0; shade <= shades; ++shade) {
    const double share = static_cast<double>(shade) / shades;
    colours.push_back({colour_at(light_scale, share), colour_at(dark_scale, share)});
    if (shade > 0) {
      colours.push_back({colour_at(light_negative, share), colour_at(dark_negative, share)});
    }
  }
  return colours;
}

struct Map {
  int cells = 0;  // per side
  int block = 1;  // nodes per cell and side
  std::vector<double> weights;
};

Map aggregate(std::span<const float> attention, int nodes) {
  Map map;
  map.block = (nodes + most_cells - 1) / most_cells;
  map.cells = (nodes + map.block - 1) / map.block;
  map.weights.assign(static_cast<size_t>(map.cells) * map.cells, 0);
  for (int row = 0; row < nodes; ++row) {
    const int cell_row = row / map.block;
    const int rows = std::min(map.block, nodes - cell_row * map.block);
    for (int column = 0; column < nodes; ++column) {
      map.weights[static_cast<size_t>(cell_row) * map.cells + column / map.block] +=
          attention[static_cast<size_t>(row) * nodes + column] / static_cast<double>(rows);
    }
  }
  return map;
}

// The smallest and largest sum of a row of whole maps, where some row does not add up to 1; else
// "".
std::string sums_text(const AttentionMaps& maps) {
  constexpr double rounding = 1e-3;
  double least = 1, most = 1;
  for (size_t row = 0; maps.whole && row < maps.weights.size(); row += maps.nodes) {
    double sum = 0;
    for (int node = 0; node < maps.nodes; ++node) sum += maps.weights[row + node];
    if (std::isfinite(sum)) least = std::min(least, sum), most = std::max(most, sum);
  }
  if (least > 1 - rounding && most < 1 + rounding) return "";
  return fmt::format("; a row adds up to {:.2g} to {:.2g}", least, most);
}

class AttentionDrawing {
 public:
  AttentionDrawing(const AttentionMaps& maps, int cells, double scale_end)
      : maps_(maps),
        layout_(layout_of(maps, cells)),
        scale_end_(scale_end),
        has_negative_(std::ranges::any_of(maps.weights, [](float weight) { return weight < 0; })) {}

  std::string draw(const std::vector<Map>& maps, const std::string& title) {
    const int width = std::max(maps_.heads * layout_.pitch_x(), least_width);
    int y = 4;
    for (const std::string& line : wrapped(title, drawing_text_size, 0.92 * width)) {
      y += text_height;
      text_ += fmt::format("<text x=\"2\" y=\"{}\" font-weight=\"bold\">{}</text>\n", y,
                           escape_markup(line));
    }
    y += gap;
    for (int layer = 0; layer < maps_.depth; ++layer) {
      for (int head = 0; head < maps_.heads; ++head) {
        draw_map(maps[static_cast<size_t>(layer) * maps_.heads + head], layer, head,
                 y + layout_.heading_space);
      }
      y += layout_.pitch_y();
    }
    y = draw_legend(width, y + gap, maps.front().block);
    text_ = fmt::format("<rect width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", width, y, light_paper) +
            text_;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
               "height=\"{1}\" role=\"img\" font-family=\"sans-serif\" font-size=\"{2}\">\n"
               "<title>{3}</title>\n<desc>{4}</desc>\n{5}<g fill=\"#222222\">\n",
               width, y, drawing_text_size, escape_markup(title), description(),
               dark_mode_style(text_ + " fill=\"#222222\"", themed_shades())) +
           text_ + "</g>\n</svg>\n";
  }

 private:
  std::string description() const {
    return fmt::format(
        "Attention weights over {} nodes, one map per layer ({}) and head ({}): a row for the node "
        "that looks, a column for where it looks.",
        maps_.nodes, maps_.depth, maps_.heads);
  }

  void draw_map(const Map& map, int layer, int head, int top) {
    const double cell = static_cast<double>(layout_.side) / map.cells;
    text_ += fmt::format(
        "<g transform=\"translate({},{})\" shape-rendering=\"crispEdges\">\n<text x=\"{}\" "
        "y=\"{}\" text-anchor=\"middle\">"
        "layer {}, head {}</text>\n"
        "<rect width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#999999\"/>\n",
        layout_.label_space + head * layout_.pitch_x(), top, layout_.side / 2,
        17 - layout_.heading_space, layer, head, layout_.side, layout_.side, colour_at(0));
    if (map.cells <= most_numbers) {
      draw_cells_with_numbers(map, cell);
    } else {
      draw_cells_by_shade(map, cell);
    }
    draw_labels(map, cell);
    text_ += "</g>\n";
  }

  // If there are few cells, each shows its number under the pointer.
  void draw_cells_with_numbers(const Map& map, double cell) {
    for (int row = 0; row < map.cells; ++row) {
      for (int column = 0; column < map.cells; ++column) {
        const double weight = map.weights[static_cast<size_t>(row) * map.cells + column];
        if (std::abs(weight / scale_end_) < 0.5 / shades) continue;  // the colour of the background
        text_ += fmt::format(
            "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\">"
            "<title>{} \u2192 {}: {:.3f}</title></rect>\n",
            column * cell, row * cell, cell, cell, colour_at(weight / scale_end_),
            escape_markup(maps_.full_name(row)), escape_markup(maps_.full_name(column)), weight);
      }
    }
  }

  // If there are many cells, one path draws all cells of a shade, which keeps the drawing small.
  void draw_cells_by_shade(const Map& map, double cell) {
    std::map<std::string, std::string> paths;
    for (int row = 0; row < map.cells; ++row) {
      for (int column = 0; column < map.cells; ++column) {
        const double weight = map.weights[static_cast<size_t>(row) * map.cells + column];
        if (std::abs(weight / scale_end_) < 0.5 / shades) continue;
        paths[colour_at(weight / scale_end_)] += fmt::format("M{} {}h1v1h-1z", column, row);
      }
    }
    for (const auto& [colour, path] : paths) {
      text_ += fmt::format("<path transform=\"scale({:.4f})\" fill=\"{}\" d=\"{}\"/>\n", cell,
                           colour, path);
    }
  }

  void draw_labels(const Map& map, double cell) {
    const int last = map.cells - 1;
    if (layout_.every_name) {
      for (int at = 0; at <= last; ++at) draw_label((at + 0.5) * cell, maps_.name(at));
      return;
    }
    const int highest = maps_.first_node + maps_.nodes - maps_.scratch_nodes;
    const double longest = text_width(std::to_string(highest), drawing_text_size);
    const int most_labels = static_cast<int>(layout_.side / std::max(14.5, longest + 5));
    const int step = (map.cells + most_labels - 1) / most_labels;
    const bool name_last = maps_.scratch_nodes > 0;  // the scratch node has a name of its own
    for (int at = 0; at <= last; at += step) {
      if (!name_last || at + step <= last) {
        draw_label((at + 0.5) * cell, maps_.number(at * map.block));
      }
    }
    if (name_last) draw_label((last + 0.5) * cell, maps_.number(maps_.nodes - 1));
  }

  void draw_label(double middle, const std::string& name) {
    const std::string shown = escape_markup(name);
    const std::string above =
        layout_.upright ? fmt::format("transform=\"translate({:.1f},-5) rotate(-90)\"", middle + 5)
                        : fmt::format("x=\"{:.1f}\" y=\"-5\" text-anchor=\"middle\"", middle);
    text_ += fmt::format(
        "<text {} fill=\"#555555\">{}</text>"
        "<text x=\"-4\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#555555\">{}</text>\n",
        above, shown, middle + 5, shown);
  }

  // Returns where it ends.
  int draw_legend(int width, int top, int block) {
    // With weights below 0 the same bar goes from minus the strongest colour to the strongest.
    const int first = has_negative_ ? -shades : 0, step_width = has_negative_ ? 2 : 4;
    const std::string start = has_negative_ ? fmt::format("-{:.2g}", scale_end_) : "0";
    const int room = has_negative_ ? static_cast<int>(text_width(start, drawing_text_size)) : 0;
    text_ += fmt::format("<g transform=\"translate({},{})\">\n", layout_.label_space + room, top);
    for (int shade = first; shade < shades; ++shade) {
      text_ +=
          fmt::format("<rect x=\"{}\" width=\"{}\" height=\"12\" fill=\"{}\"/>\n",
                      (shade - first) * step_width, step_width, colour_at((shade + 0.5) / shades));
    }
    text_ += fmt::format(
        "<rect width=\"{0}\" height=\"12\" fill=\"none\" stroke=\"#999999\"/>\n"
        "<text x=\"-5\" y=\"11\" text-anchor=\"end\">{3}</text><text x=\"{1}\" y=\"11\">{2:.2g} "
        "attention weight</text>\n</g>\n",
        (shades - first) * step_width, (shades - first) * step_width + 6, scale_end_, start);
    std::string text = "Row: the node that looks; column: where it looks";
    if (maps_.scratch_nodes > 0) text += "; s: scratch";
    text += sums_text(maps_);
    if (block > 1) text += fmt::format("; a cell stands for {0} \u00d7 {0} nodes", block);
    int y = top + 14;
    for (const std::string& line : wrapped(text, drawing_text_size, width)) {
      y += text_height;
      text_ += fmt::format("<text x=\"2\" y=\"{}\">{}</text>\n", y, line);
    }
    return y + gap;
  }

  const AttentionMaps& maps_;
  const MapLayout layout_;
  const double scale_end_;
  const bool has_negative_;
  std::string text_;
};

std::vector<Map> cells_of(const AttentionMaps& maps) {
  if (maps.depth < 1 || maps.heads < 1 || maps.nodes < 1) {
    throw std::invalid_argument("attention_svg: impossible sizes");
  }
  const size_t size = static_cast<size_t>(maps.nodes) * maps.nodes;
  if (maps.weights.size() != size * maps.depth * maps.heads) {
    throw std::invalid_argument("attention_svg: not [depth, heads, nodes, nodes]");
  }
  std::vector<Map> cells;
  for (size_t i = 0; i < static_cast<size_t>(maps.depth) * maps.heads; ++i) {
    cells.push_back(aggregate(std::span(maps.weights).subspan(i * size, size), maps.nodes));
  }
  return cells;
}

}  // namespace

double attention_scale_end(const AttentionMaps& maps) {
  double largest = 0;
  for (const Map& map : cells_of(maps)) {
    for (const double weight : map.weights) {
      if (std::isfinite(weight)) largest = std::max(largest, std::abs(weight));
    }
  }
  if (largest > 1.001) {  // more than the rounding of a sum
    const double tenth = std::pow(10, std::floor(std::log10(largest)) - 1);
    return tenth * std::ceil(largest / tenth - 1e-6);
  }
  return largest > 0.05 ? std::min(1.0, std::ceil(largest * 10 - 1e-6) / 10)
                        : std::max(largest, 1e-6);
}

std::string attention_svg(const AttentionMaps& maps, const std::string& title, double scale_end) {
  const int real_nodes = maps.nodes - maps.scratch_nodes;
  if (maps.scratch_nodes < 0 || real_nodes < 0 || !(scale_end > 0) ||
      (!maps.names.empty() && maps.names.size() != static_cast<size_t>(real_nodes))) {
    throw std::invalid_argument("attention_svg: impossible sizes");
  }
  const std::vector<Map> cells = cells_of(maps);
  return AttentionDrawing(maps, cells.front().cells, scale_end).draw(cells, title);
}

// The maps apart from their drawing: names of nodes, and a part of them.

std::string AttentionMaps::number(int node) const {
  const int real_nodes = nodes - scratch_nodes;
  if (node < real_nodes) return std::to_string(first_node + node);
  return scratch_nodes == 1 ? "s" : fmt::format("s{}", node - real_nodes);
}

std::string AttentionMaps::name(int node) const {
  const auto at = static_cast<size_t>(node);
  return at < names.size() ? names[at] : number(node);
}

std::string AttentionMaps::full_name(int node) const {
  const auto at = static_cast<size_t>(node);
  return at < names.size() ? fmt::format("{} {}", number(node), names[at]) : number(node);
}

AttentionMaps part_of(const AttentionMaps& maps, int first, int last) {
  if (first < 0 || last < first || last >= maps.nodes - maps.scratch_nodes) {
    throw std::invalid_argument("part_of: no such nodes");
  }
  AttentionMaps part{.caption = maps.caption,
                     .depth = maps.depth,
                     .heads = maps.heads,
                     .nodes = last - first + 1,
                     .scratch_nodes = 0,
                     .weights = {},
                     .names = {},
                     .first_node = maps.first_node + first,
                     .whole = false};
  for (int map = 0; map < maps.depth * maps.heads; ++map) {
    for (int row = first; row <= last; ++row) {
      const auto begin = maps.weights.begin() + (int64_t{1} * map * maps.nodes + row) * maps.nodes;
      part.weights.insert(part.weights.end(), begin + first, begin + last + 1);
    }
  }
  if (!maps.names.empty()) {
    part.names.assign(maps.names.begin() + first, maps.names.begin() + last + 1);
  }
  return part;
}

}  // namespace posattn
