// Calls a template for the sizes that a layer of side_tile.cuh needs. For .cu files.
#pragma once

#include "posattn/model/cuda/medium/launch.h"

namespace posattn::cuda::medium {

// call<node_tiles, score_tiles>()
template <class Call>
void with_side_sizes(const Layer& layer, Call call) {
  if (layer.side_columns > 64) return call.template operator()<1, 5>();
  with_node_tiles<false>(
      layer.nodes, [&]<bool, int node_tiles>() { call.template operator()<node_tiles, 4>(); });
}

}  // namespace posattn::cuda::medium
