// How a model answers a change of its input's scale, layer by layer, and the identity of attention
// that sees the scale. Where the first one fails (bias_scaling.h) because of attention alone, as
// for dot products of the data, it holds with other queries and keys: those of c times their
// weights,
//   f_(b,W)(c x) = c f_(b/c, cW)(x),  W what maps the data to queries and keys, b other biases
// since W (c z) + b_Q = (c W) z + b_Q. Dot products without biases are then c^2 times those of x:
// attention is cooled, its inverse temperature times c^2 (docs/bounds-range.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "posattn/model/file/model_file.h"
#include "posattn/model/spec/parameters.h"
#include "posattn/model/spec/spec.h"

namespace posattn::bounds {

// What becomes of one layer's scores and weights when the layer reads c X in place of X. A degree d
// means a factor c^d; nothing: no power of c that is known.
struct LayerScaling {
  AttentionChoices kind;
  std::optional<int> scores, attention;
};

struct ScaleLaw {
  std::vector<LayerScaling> layers;
  // Why f(c x) is not c f(x), with the tensor or field; empty where it is.
  std::string broken_by;
};
ScaleLaw scale_law(const Model& model);

// The reason why the identity above fails for such a model; empty where it holds.
std::optional<std::string> cooling_broken_by(const ModelSpec& spec);

// The weights of the right-hand side; layers whose attention does not see the scale keep their
// queries and keys. Throws Error(configuration) where the identity does not hold, Error(usage) for
// c that is not above 0 or infinite.
template <class T>
Parameters<T> cooled(const ModelSpec& spec, const Parameters<T>& parameters, double c);

}  // namespace posattn::bounds
