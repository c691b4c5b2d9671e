// Calls a template for the sizes that a number of nodes needs. For .cu files.
#pragma once

#include "posattn/model/cuda/medium/layer.h"

namespace posattn::cuda::medium {

template <bool exact, class Call>
auto with_node_tiles(int nodes, Call call) {
  switch ((nodes + 15) / 16) {
    case 1:
      return call.template operator()<exact, 1>();
    case 2:
      return call.template operator()<exact, 2>();
    case 3:
      return call.template operator()<exact, 3>();
    case 4:
      return call.template operator()<exact, 4>();
    default:
      return call.template operator()<exact, 5>();
  }
}

// call<exact, node_tiles>()
template <class Call>
auto with_sizes(int nodes, Precision precision, Call call) {
  return precision == Precision::fp32 ? with_node_tiles<true>(nodes, call)
                                      : with_node_tiles<false>(nodes, call);
}

}  // namespace posattn::cuda::medium
