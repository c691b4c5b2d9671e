#include "posattn/simulation/model_maps.h"

#include <algorithm>

#include "posattn/model/tensor_names.h"

namespace posattn::simulation {

AffineMap map_of(const Parameters<double>& parameters, const std::string& name, int in) {
  const auto weight = parameters[names::weight(name)], bias = parameters[names::bias(name)];
  AffineMap map{Matrix(static_cast<int>(bias.size()), in), {bias.begin(), bias.end()}};
  std::ranges::copy(weight, map.weight.values.begin());
  return map;
}

AffineMap encoder_of(const ModelSpec& spec, const Parameters<double>& parameters) {
  AffineMap stored = map_of(parameters, std::string(names::encoding), spec.input_size());
  if (!spec.positions_in_input) return stored;
  const int columns = spec.data_columns;
  Matrix positions(spec.nodes(), spec.encoding_size);
  positions.values = positions_of(spec, parameters);
  const Matrix places =
      product(some_columns(stored.weight, columns, spec.encoding_size), transposed(positions));
  AffineMap encoder{Matrix(spec.width, columns + spec.nodes()), stored.bias};
  for (int r = 0; r < spec.width; ++r) {
    std::copy_n(stored.weight.row(r), columns, encoder.weight.row(r));
    std::copy_n(places.row(r), spec.nodes(), encoder.weight.row(r) + columns);
  }
  return encoder;
}

}  // namespace posattn::simulation
