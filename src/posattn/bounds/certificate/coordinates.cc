#include "posattn/bounds/certificate/coordinates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace posattn::bounds {
namespace {

// A weight that is e^-12 of the largest of its row says nothing to any output, but its logarithm
// may be far from where it started.
constexpr double least_score = -12;

// ln A with rows of mean 0.
void write_scores(const Matrix& attention, float* scores) {
  for (int i = 0; i < attention.rows; ++i) {
    const double* row = attention.row(i);
    const double largest = *std::max_element(row, row + attention.columns);
    double sum = 0;
    std::vector<double> logarithms(attention.columns);
    for (int j = 0; j < attention.columns; ++j) {
      logarithms[j] = std::max(std::log(row[j] / largest), least_score);
      sum += logarithms[j];
    }
    for (int j = 0; j < attention.columns; ++j) {
      scores[i * attention.columns + j] =
          static_cast<float>(logarithms[j] - sum / attention.columns);
    }
  }
}

}  // namespace

Coordinates::Coordinates(const CollapsedNetwork& network, bool offsets)
    : positional_(network.positional),
      nodes_(network.nodes),
      real_nodes_(network.real_nodes),
      heads_(network.heads()) {
  for (size_t l = 0; l < network.layers.size(); ++l) {
    CoordinateLayer layer{network.layers[l].in(), network.layers[l].out(), {}, -1, {}, {}};
    const auto group = [l](const char* name) { return fmt::format("layer {}: {}", l + 1, name); };
    layer.maps.push_back(add(group("T_0"), layer.out, layer.in));
    for (int h = 0; h < heads_; ++h) {
      layer.maps.push_back(add(group("T_h"), layer.out, layer.in));
    }
    if (offsets) layer.offset = add(group("t"), layer.out, 1);
    const int size = positional_ ? nodes_ : layer.in;
    for (int h = 0; h < heads_; ++h) layer.scores.push_back(add(group("scores"), size, size));
    for (int h = 0; h < heads_ && !positional_; ++h) {
      layer.score_offsets.push_back(add(group("mu"), layer.in, 1));
    }
    layers_.push_back(layer);
  }
  output_ = add("output", 1, layers_.back().out);
  if (offsets) output_offset_ = add("output", 1, 1);
}

int64_t Coordinates::add(const std::string& group, int rows, int columns) {
  tensors_.push_back({size_, rows, columns});
  if (groups_.empty() || groups_.back().name != group) groups_.push_back({group, size_, 0});
  groups_.back().size += tensors_.back().size();
  size_ += tensors_.back().size();
  return tensors_.back().first;
}

std::vector<float> Coordinates::values(const CollapsedNetwork& network) const {
  std::vector<float> values(size_);
  const auto write = [&](const std::vector<double>& from, int64_t first) {
    std::ranges::transform(from, values.begin() + first,
                           [](double x) { return static_cast<float>(x); });
  };
  for (size_t l = 0; l < layers_.size(); ++l) {
    const CoordinateLayer& layer = layers_[l];
    const CollapsedLayer& from = network.layers[l];
    for (int h = 0; h <= heads_; ++h) write(from.maps[h].values, layer.maps[h]);
    if (layer.offset >= 0) write(from.offset, layer.offset);
    for (int h = 0; h < heads_; ++h) {
      if (positional_) {
        write_scores(from.attention[h], values.data() + layer.scores[h]);
      } else {
        write(from.scores[h].values, layer.scores[h]);
        write(from.score_offsets[h], layer.score_offsets[h]);
      }
    }
  }
  write(network.output, output_);
  if (output_offset_ >= 0) values[output_offset_] = static_cast<float>(network.output_offset);
  return values;
}

}  // namespace posattn::bounds
