// What looks into a BlockNetwork's forward pass and may change it.
#pragma once

#include <functional>
#include <span>

namespace posattn {

// Which numbers of a forward pass, in the order in which they are computed.
enum class Activated {
  embedding,         // [samples, nodes, width], what the first layer reads
  values,            // [samples, nodes, heads, head_size]
  attention,         // [samples, heads, nodes, nodes]
  heads,             // [samples, nodes, heads, head_size], attention times values
  attention_output,  // [samples, nodes, width], behind the output map
  hidden,            // [samples, nodes, mlp_width], behind an activation of the MLP
  mlp_output,        // [samples, nodes, width], before a residual connection
  state,             // [samples, nodes, width], what the next layer reads
};

// Called with all numbers of a place, in memory as above. The forward pass goes on with what the
// hook leaves there. `map` counts the hidden layers of an MLP.
template <class T>
using BlockHook = std::function<void(Activated what, int layer, int map, std::span<T> numbers)>;

}  // namespace posattn
