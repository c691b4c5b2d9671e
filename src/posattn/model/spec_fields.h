// Names every field of a spec once: writing, reading and perturbing specs all go through this list.
//   visit(name, field, origin)
// An origin says since when files have the field. A field newer than 0.1.0 is left out of files
// while it has the default that it came with, and a file without it means that default: a new field
// changes neither the files that exist nor what they mean, even if the struct's default changes
// later.
#pragma once

#include "posattn/base/since.h"
#include "posattn/model/spec.h"

namespace posattn {

struct SinceFirst {};   // in every file
struct SinceRouted {};  // in every file of a routed model, and only there (0.1.0)
template <class Spec, class Visitor>
void visit_fields(Spec& spec, Visitor&& visit) {
  constexpr SinceFirst first;
  constexpr SinceRouted with_routes;
  visit("real_nodes", spec.real_nodes, first);
  visit("scratch_nodes", spec.scratch_nodes, first);
  visit("data_columns", spec.data_columns, first);
  visit("output_columns", spec.output_columns, first);
  visit("attention", spec.attention, first);
  visit("positions_in_input", spec.positions_in_input, first);
  visit("encoding", spec.encoding, first);
  visit("encoding_size", spec.encoding_size, first);
  visit("rope", spec.rope, first);
  visit("direct_attention", spec.direct_attention, first);
  visit("width", spec.width, first);
  visit("heads", spec.heads, first);
  visit("depth", spec.depth, first);
  visit("mlp_width", spec.mlp_width, first);
  visit("mlp_depth", spec.mlp_depth, first);
  visit("routed", spec.routed, with_routes);
  visit("route_places", spec.route_places, with_routes);

  visit("biases", spec.biases, Since{"0.2.0", Biases::all});
  visit("relative_attention", spec.relative_attention, Since{"0.2.0", false});
  visit("reach", spec.reach, Since{"0.2.0", 0});
  visit("causal", spec.causal, Since{"0.2.0", false});
  visit("split_heads", spec.split_heads, Since{"0.2.0", false});
  visit("join", spec.join, Since{"0.2.0", Join::concatenate});
  visit("normalisation", spec.normalisation, Since{"0.2.0", Normalisation::none});
  visit("activation", spec.activation, Since{"0.2.0", Activation::relu});
  visit("vocabulary", spec.vocabulary, Since{"0.2.0", 0});
  visit("positions_added", spec.positions_added, Since{"0.2.0", false});
  visit("tied_output", spec.tied_output, Since{"0.2.0", false});
  visit("fixed_tokens", spec.fixed_tokens, Since{"0.2.0", false});
  visit("read_nodes", spec.read_nodes, Since{"0.2.0", 0});
  visit("loss", spec.loss, Since{"0.2.0", Loss::squared_error});
}

// Whether an engine that knows nothing but these fields knows the whole model: every other one has
// its default. A field that an engine does not know makes it refuse.
template <class... Member>
bool knows_only(const ModelSpec& spec, Member... members) {
  ModelSpec known;
  ((known.*members = spec.*members), ...);
  return known == spec;
}

}  // namespace posattn
