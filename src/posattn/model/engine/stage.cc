#include "posattn/model/engine/stage.h"

namespace posattn::engine {

LinearMap LinearMap::find(const ParameterLayout& layout, const std::string& name) {
  const TensorInfo& weight = layout.at(name + ".weight");
  return {weight.offset, layout.at(name + ".bias").offset, weight.shape[0], weight.shape[1]};
}

std::string layer_tensor(int layer, const std::string& rest) {
  return "transformer_layers." + std::to_string(layer) + "." + rest;
}

}  // namespace posattn::engine
