#include "posattn/report/svg/attention_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <span>
#include <stdexcept>

#include "posattn/report/markup.h"

namespace posattn {
namespace {

constexpr int most_numbers = 20;  // cells per side up to which each shows its number
constexpr int shades = 32;        // told apart where cells are many
constexpr int most_cells = 64;    // per side of a map, so that the drawing stays small
constexpr int map_side = 190, label_space = 34, gap = 26, head_space = 66, legend_space = 62;
constexpr int map_pitch_x = map_side + label_space + gap;
constexpr int map_pitch_y = map_side + label_space + gap;

// A single hue from near white to dark blue, its lightness falling evenly: readable with any colour
// vision and in print.
struct Colour {
  double red, green, blue;
};
constexpr std::array<Colour, 5> scale{
    {{247, 251, 255}, {198, 219, 239}, {107, 174, 214}, {33, 113, 181}, {8, 48, 107}}};

std::string colour_at(double share) {
  if (!std::isfinite(share)) return "#bbbbbb";
  const double at = std::clamp(share, 0.0, 1.0) * (scale.size() - 1);
  const auto below = std::min(static_cast<size_t>(at), scale.size() - 2);
  const double part = at - static_cast<double>(below);
  const auto mix = [&](double Colour::*channel) {
    return std::lround(scale[below].*channel * (1 - part) + scale[below + 1].*channel * part);
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(&Colour::red), mix(&Colour::green),
                     mix(&Colour::blue));
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
  Drawing(int depth, int heads, int nodes, int scratch_nodes)
      : depth_(depth), heads_(heads), nodes_(nodes), scratch_nodes_(scratch_nodes) {}

  std::string draw(const std::vector<Map>& maps, const std::string& title) {
    for (const Map& map : maps) {
      for (const double weight : map.weights) {
        if (std::isfinite(weight)) largest_ = std::max(largest_, weight);
      }
    }
    // One scale for all maps, its end a round number.
    largest_ = largest_ > 0.05 ? std::min(1.0, std::ceil(largest_ * 10 - 1e-6) / 10)
                               : std::max(largest_, 1e-6);
    const int width = std::max(heads_ * map_pitch_x + gap, 320);
    const int height = head_space + depth_ * map_pitch_y + legend_space;
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" role=\"img\" font-family=\"sans-serif\" font-size=\"11\" fill=\"#222\">\n"
        "<title>{2}</title>\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n"
        "<text x=\"{3}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{2}</text>\n",
        width, height, escape_markup(title), gap);
    for (int layer = 0; layer < depth_; ++layer) {
      for (int head = 0; head < heads_; ++head) {
        draw_map(maps[static_cast<size_t>(layer) * heads_ + head], layer, head);
      }
    }
    draw_legend(height - legend_space + 6, maps.front().block);
    return text_ + "</svg>\n";
  }

 private:
  std::string node_name(int node) const {
    if (node < nodes_ - scratch_nodes_) return std::to_string(node);
    return scratch_nodes_ == 1 ? "s" : fmt::format("s{}", node - (nodes_ - scratch_nodes_));
  }

  void draw_map(const Map& map, int layer, int head) {
    const double cell = static_cast<double>(map_side) / map.cells;
    text_ += fmt::format(
        "<g transform=\"translate({},{})\">\n<text x=\"{}\" y=\"-20\" text-anchor=\"middle\" "
        "font-size=\"12\">layer {}, head {}</text>\n"
        "<rect width=\"{}\" height=\"{}\" fill=\"{}\" stroke=\"#999\"/>\n",
        gap + label_space + head * map_pitch_x, head_space + label_space / 2 + layer * map_pitch_y,
        map_side / 2, layer, head, map_side, map_side, colour_at(0));
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
        if (weight / largest_ < 0.004) continue;  // not to be told from the background
        text_ += fmt::format(
            "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\">"
            "<title>{} \u2192 {}: {:.3f}</title></rect>\n",
            column * cell, row * cell, cell, cell, colour_at(weight / largest_), node_name(row),
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
        const double shade = std::round(weight / largest_ * shades) / shades;
        if (shade == 0) continue;
        paths[colour_at(shade)] += fmt::format("M{} {}h1v1h-1z", column, row);
      }
    }
    for (const auto& [colour, path] : paths) {
      text_ += fmt::format("<path transform=\"scale({:.4f})\" fill=\"{}\" d=\"{}\"/>\n", cell,
                           colour, path);
    }
  }

  void draw_labels(const Map& map, double cell) {
    const int most_labels = nodes_ < 100 ? 16 : 6;  // long numbers need room
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
        "<text x=\"{:.1f}\" y=\"-5\" text-anchor=\"middle\" fill=\"#555\">{}</text>"
        "<text x=\"-5\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#555\">{}</text>\n",
        middle, name, middle + 4, name);
  }

  void draw_legend(int top, int block) {
    constexpr int steps = 32, step_width = 5;
    text_ += fmt::format("<g transform=\"translate({},{})\">\n", gap + label_space, top);
    for (int i = 0; i < steps; ++i) {
      text_ += fmt::format("<rect x=\"{}\" width=\"{}\" height=\"10\" fill=\"{}\"/>\n",
                           i * step_width, step_width, colour_at((i + 0.5) / steps));
    }
    text_ += fmt::format(
        "<rect width=\"{0}\" height=\"10\" fill=\"none\" stroke=\"#999\"/>\n"
        "<text x=\"-5\" y=\"9\" text-anchor=\"end\">0</text><text x=\"{1}\" y=\"9\">{2:.2g} "
        "attention weight</text>\n<text y=\"28\">row: the node that looks; column: where it looks"
        "{3}</text>\n",
        steps * step_width, steps * step_width + 6, largest_,
        scratch_nodes_ > 0 ? "; s: scratch" : "");
    if (block > 1) {
      text_ += fmt::format("<text y=\"43\">a cell stands for {0} \u00d7 {0} nodes</text>\n", block);
    }
    text_ += "</g>\n";
  }

  int depth_, heads_, nodes_, scratch_nodes_;
  double largest_ = 0;
  std::string text_;
};

}  // namespace

std::string attention_svg(const std::vector<float>& attention, int depth, int heads, int nodes,
                          int scratch_nodes, const std::string& title) {
  if (depth < 1 || heads < 1 || nodes < 1 || scratch_nodes < 0 || scratch_nodes > nodes) {
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
  return Drawing(depth, heads, nodes, scratch_nodes).draw(maps, title);
}

}  // namespace posattn
