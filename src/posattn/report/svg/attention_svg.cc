#include "posattn/report/svg/attention_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <stdexcept>

#include "posattn/report/dark_mode.h"
#include "posattn/report/markup.h"
#include "posattn/report/plot/text_lines.h"

namespace posattn {
namespace {

constexpr int most_numbers = 20;  // cells per side up to which each shows its number
constexpr int shades = 32;        // told apart
constexpr int most_cells = 64;    // per side of a map, so that the drawing stays small
constexpr int text_height = 18;
// Two heads, as the paper's models have, fit into the width of a phone.
constexpr int map_side = 134, label_space = 28, gap = 10, heading_space = 42;
constexpr int map_pitch_x = map_side + label_space + gap;
constexpr int map_pitch_y = map_side + heading_space + gap;
constexpr int least_width = 320;  // for title and legend

// A single hue, its lightness changing evenly: readable with any colour vision and in print. From
// near the paper to far from it: to dark blue on light paper, to pale blue on dark.
struct Colour {
  double red, green, blue;
};
using Scale = std::array<Colour, 5>;
constexpr Scale light_scale{
    {{247, 251, 255}, {198, 219, 239}, {107, 174, 214}, {33, 113, 181}, {8, 48, 107}}};
constexpr Scale dark_scale{
    {{29, 34, 41}, {24, 66, 115}, {38, 118, 186}, {117, 182, 222}, {226, 238, 249}}};

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
  return colour_at(light_scale, std::round(std::clamp(share, 0.0, 1.0) * shades) / shades);
}

std::vector<ThemedColour> themed_shades() {
  std::vector<ThemedColour> colours;
  for (int shade = 0; shade <= shades; ++shade) {
    const double share = static_cast<double>(shade) / shades;
    colours.push_back({colour_at(light_scale, share), colour_at(dark_scale, share)});
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

class Drawing {
 public:
  Drawing(int depth, int heads, int nodes, int scratch_nodes, double scale_end)
      : depth_(depth),
        heads_(heads),
        nodes_(nodes),
        scratch_nodes_(scratch_nodes),
        scale_end_(scale_end) {}

  std::string draw(const std::vector<Map>& maps, const std::string& title) {
    const int width = std::max(heads_ * map_pitch_x, least_width);
    int y = 4;
    for (const std::string& line : wrapped(title, drawing_text_size, 0.92 * width)) {
      y += text_height;
      text_ += fmt::format("<text x=\"2\" y=\"{}\" font-weight=\"bold\">{}</text>\n", y,
                           escape_markup(line));
    }
    y += gap;
    for (int layer = 0; layer < depth_; ++layer) {
      for (int head = 0; head < heads_; ++head) {
        draw_map(maps[static_cast<size_t>(layer) * heads_ + head], layer, head, y + heading_space);
      }
      y += map_pitch_y;
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
  std::string node_name(int node) const {
    if (node < nodes_ - scratch_nodes_) return std::to_string(node);
    return scratch_nodes_ == 1 ? "s" : fmt::format("s{}", node - (nodes_ - scratch_nodes_));
  }

  std::string description() const {
    return fmt::format(
        "Attention weights over {} nodes, one map per layer ({}) and head ({}): a row for the node "
        "that looks, a column for where it looks.",
        nodes_, depth_, heads_);
  }

  void draw_map(const Map& map, int layer, int head, int top) {
    const double cell = static_cast<double>(map_side) / map.cells;
    text_ += fmt::format(
        "<g transform=\"translate({},{})\" shape-rendering=\"crispEdges\">\n<text x=\"{}\" "
        "y=\"-25\" text-anchor=\"middle\">"
        "layer {}, head {}</text>\n"
        "<rect width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#999999\"/>\n",
        label_space + head * map_pitch_x, top, map_side / 2, layer, head, map_side, map_side,
        colour_at(0));
    if (map.cells <= most_numbers) {
      draw_cells_with_numbers(map, cell);
    } else {
      draw_cells_by_shade(map, cell);
    }
    draw_labels(map, cell);
    text_ += "</g>\n";
  }

  // Few cells: each shows its number under the pointer.
  void draw_cells_with_numbers(const Map& map, double cell) {
    for (int row = 0; row < map.cells; ++row) {
      for (int column = 0; column < map.cells; ++column) {
        const double weight = map.weights[static_cast<size_t>(row) * map.cells + column];
        if (weight / scale_end_ < 0.5 / shades) continue;  // the colour of the background
        text_ += fmt::format(
            "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\">"
            "<title>{} \u2192 {}: {:.3f}</title></rect>\n",
            column * cell, row * cell, cell, cell, colour_at(weight / scale_end_), node_name(row),
            node_name(column), weight);
      }
    }
  }

  // Many cells: one path for all cells of a shade, which keeps the drawing small.
  void draw_cells_by_shade(const Map& map, double cell) {
    std::map<std::string, std::string> paths;
    for (int row = 0; row < map.cells; ++row) {
      for (int column = 0; column < map.cells; ++column) {
        const double weight = map.weights[static_cast<size_t>(row) * map.cells + column];
        if (weight / scale_end_ < 0.5 / shades) continue;
        paths[colour_at(weight / scale_end_)] += fmt::format("M{} {}h1v1h-1z", column, row);
      }
    }
    for (const auto& [colour, path] : paths) {
      text_ += fmt::format("<path transform=\"scale({:.4f})\" fill=\"{}\" d=\"{}\"/>\n", cell,
                           colour, path);
    }
  }

  void draw_labels(const Map& map, double cell) {
    const double longest = text_width(std::to_string(nodes_ - scratch_nodes_), drawing_text_size);
    const int most_labels = static_cast<int>(map_side / std::max(14.5, longest + 5));
    const int step = (map.cells + most_labels - 1) / most_labels;
    const int last = map.cells - 1;
    const bool name_last = scratch_nodes_ > 0;  // the scratch node has a name of its own
    for (int at = 0; at <= last; at += step) {
      if (!name_last || at + step <= last) draw_label((at + 0.5) * cell, node_name(at * map.block));
    }
    if (name_last) draw_label((last + 0.5) * cell, node_name(nodes_ - 1));
  }

  void draw_label(double middle, const std::string& name) {
    text_ += fmt::format(
        "<text x=\"{:.1f}\" y=\"-5\" text-anchor=\"middle\" fill=\"#555555\">{}</text>"
        "<text x=\"-4\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#555555\">{}</text>\n",
        middle, name, middle + 5, name);
  }

  // Returns where it ends.
  int draw_legend(int width, int top, int block) {
    constexpr int step_width = 4;
    text_ += fmt::format("<g transform=\"translate({},{})\">\n", label_space, top);
    for (int shade = 0; shade < shades; ++shade) {
      text_ += fmt::format("<rect x=\"{}\" width=\"{}\" height=\"12\" fill=\"{}\"/>\n",
                           shade * step_width, step_width, colour_at((shade + 0.5) / shades));
    }
    text_ += fmt::format(
        "<rect width=\"{0}\" height=\"12\" fill=\"none\" stroke=\"#999999\"/>\n"
        "<text x=\"-5\" y=\"11\" text-anchor=\"end\">0</text><text x=\"{1}\" y=\"11\">{2:.2g} "
        "attention weight</text>\n</g>\n",
        shades * step_width, shades * step_width + 6, scale_end_);
    std::string text = "Row: the node that looks; column: where it looks";
    if (scratch_nodes_ > 0) text += "; s: scratch";
    if (block > 1) text += fmt::format("; a cell stands for {0} \u00d7 {0} nodes", block);
    int y = top + 14;
    for (const std::string& line : wrapped(text, drawing_text_size, width)) {
      y += text_height;
      text_ += fmt::format("<text x=\"2\" y=\"{}\">{}</text>\n", y, line);
    }
    return y + gap;
  }

  int depth_, heads_, nodes_, scratch_nodes_;
  double scale_end_;
  std::string text_;
};

std::vector<Map> maps_of(const std::vector<float>& attention, int depth, int heads, int nodes) {
  if (depth < 1 || heads < 1 || nodes < 1) {
    throw std::invalid_argument("attention_svg: impossible sizes");
  }
  const size_t size = static_cast<size_t>(nodes) * nodes;
  if (attention.size() != size * depth * heads) {
    throw std::invalid_argument("attention_svg: not [depth, heads, nodes, nodes]");
  }
  std::vector<Map> maps;
  for (size_t i = 0; i < static_cast<size_t>(depth) * heads; ++i) {
    maps.push_back(aggregate(std::span(attention).subspan(i * size, size), nodes));
  }
  return maps;
}

}  // namespace

double attention_scale_end(const std::vector<float>& attention, int depth, int heads, int nodes) {
  double largest = 0;
  for (const Map& map : maps_of(attention, depth, heads, nodes)) {
    for (const double weight : map.weights) {
      if (std::isfinite(weight)) largest = std::max(largest, weight);
    }
  }
  return largest > 0.05 ? std::min(1.0, std::ceil(largest * 10 - 1e-6) / 10)
                        : std::max(largest, 1e-6);
}

std::string attention_svg(const std::vector<float>& attention, int depth, int heads, int nodes,
                          int scratch_nodes, const std::string& title, double scale_end) {
  if (scratch_nodes < 0 || scratch_nodes > nodes || !(scale_end > 0)) {
    throw std::invalid_argument("attention_svg: impossible sizes");
  }
  return Drawing(depth, heads, nodes, scratch_nodes, scale_end)
      .draw(maps_of(attention, depth, heads, nodes), title);
}

}  // namespace posattn
