#include <cmath>

#include "posattn/model/cuda/step/position_tables.h"

namespace posattn::cuda {

std::vector<float> positions_table(const ModelSpec& spec) {
  if (!spec.uses_positions() || spec.stores_positions()) return {};
  const std::vector<double> positions = formula_positions(spec);
  return {positions.begin(), positions.end()};
}

int32_t rotated_size(const ModelSpec& spec) {
  for (int layer = 0; layer < spec.depth; ++layer) {
    const ModelSpec kind = spec.of_layer(layer);
    if (kind.rotation == Rotation::rope) return kind.key_size();
  }
  return 0;
}

bool rotates_alike(const ModelSpec& spec) {
  for (int layer = 0; layer < spec.depth; ++layer) {
    const ModelSpec kind = spec.of_layer(layer);
    if (kind.rotation == Rotation::rope && kind.key_size() != rotated_size(spec)) return false;
  }
  return true;
}

std::vector<float> rotation_table(const ModelSpec& spec) {
  const int64_t nodes = spec.nodes(), size = rotated_size(spec);
  std::vector<float> table(nodes * size);
  for (int64_t node = 0; node < nodes; ++node) {
    for (int64_t c = 0; c + 1 < size; c += 2) {
      const double angle = static_cast<double>(node) *
                           std::pow(10000.0, -static_cast<double>(c) / static_cast<double>(size));
      table[node * size + c] = static_cast<float>(std::cos(angle));
      table[node * size + c + 1] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

}  // namespace posattn::cuda
