// How a network's outputs change when its input is scaled, exactly. With values alone in the input,
// attention that is the same for x and c x, and ReLUs, a network with weights W and biases b
// satisfies
//   f_b(c x) = c f_(b/c)(x)   for every c > 0
// (docs/bounds-range.md has the proof): outside its training range a network is itself with smaller
// biases. Biases of queries and keys count among b where their source scales with x, and tables of
// scores of positions where scores are added to values. Attention that is drawn in training has
// this property in tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "posattn/model/plan.h"
#include "posattn/model/spec/parameters.h"
#include "posattn/model/spec/spec.h"

namespace posattn::bounds {

// The reason why the identity fails for such a model, with the tensor or field; empty where it
// holds. In a model with the wrap `scale` it does, and b is empty.
std::optional<std::string> scaling_broken_by(const ModelSpec& spec);

// The tensors b.
std::vector<TensorId> biases_that_scale(const ModelSpec& spec, const Plan& plan);

// The same weights with b / c; c = infinity: without biases. Throws Error(configuration) where the
// identity does not hold, Error(usage) for c that is not above 0.
template <class T>
Parameters<T> divide_biases(const ModelSpec& spec, const Parameters<T>& parameters, double c);

}  // namespace posattn::bounds
