// How a network's outputs change when its input is scaled, exactly. With values alone in the input,
// attention that does not depend on the data, and ReLUs, a network with weights W and biases b (all
// but those of queries and keys) satisfies
//   f_b(c x) = c f_(b/c)(x)   for every c > 0
// (docs/bounds-range.md has the proof): outside its training range a network is itself with smaller
// biases.
#pragma once

#include <optional>
#include <string>

#include "posattn/model/parameters.h"
#include "posattn/model/spec.h"

namespace posattn::bounds {

// The reason why the identity fails for such a model; empty where it holds.
std::optional<std::string> scaling_broken_by(const ModelSpec& spec);

// The same weights with b / c; c = infinity: without biases. Throws Error(configuration) where the
// identity does not hold, Error(usage) for c that is not above 0.
template <class T>
Parameters<T> divide_biases(const ModelSpec& spec, const Parameters<T>& parameters, double c);

}  // namespace posattn::bounds
