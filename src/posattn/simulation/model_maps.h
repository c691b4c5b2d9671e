// The linear maps of a model in double.
#pragma once

#include <string>

#include "posattn/model/parameters.h"
#include "posattn/simulation/matrix.h"

namespace posattn::simulation {

// The linear map `name` with its bias, which reads vectors of size `in`.
AffineMap map_of(const Parameters<double>& parameters, const std::string& name, int in);

// The encoder. Where positions are part of the input, the map reads [data | the node's one-hot row]
// instead: any encoding of positions is linear in these rows.
AffineMap encoder_of(const ModelSpec& spec, const Parameters<double>& parameters);

}  // namespace posattn::simulation
