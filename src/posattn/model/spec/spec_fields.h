// Names every field of a spec once: files, settings, help, tests of engines all go through this
// list.
//   visit(name, field, origin)            a field that the task or the architecture decides
//   visit(name, field, origin, setting)   one that people choose
// An origin says since when files have the field. A field newer than 0.1.0 is left out of files
// while it has the default that it came with, and a file without it means that default: a new field
// changes neither the files that exist nor what they mean, even if the struct's default changes
// later.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "posattn/base/since.h"
#include "posattn/model/spec/spec.h"

namespace posattn {

struct SinceFirst {};   // in every file
struct SinceRouted {};  // in every file of a routed model, and only there (0.1.0)
struct SinceFlags {};   // a choice; files have one of the flags of 0.1.0 and 0.2.0 where they can

// What a setting accepts by itself; how settings fit together is checked elsewhere.
struct FieldLimits {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false;          // least itself is refused
  std::vector<std::string> choices;  // for text; empty: anything
};

inline FieldLimits between(double least, double most) { return {least, most, false, {}}; }
inline FieldLimits above(double least, double most) { return {least, most, true, {}}; }
inline FieldLimits one_of(std::vector<std::string> choices) {
  return {0, 0, false, std::move(choices)};
}

// How people give a field: the flag --mlp-width and the TOML key are its name with hyphens, unless
// they have another. Choices of an enumeration are its names; those of a flag, if any, are the
// names of false and true.
struct Setting {
  const char* help;
  FieldLimits limits = {};
  const char* name = nullptr;
};

// In the order of help and TOML files.
template <class Settings, class Visitor>
void visit_settings(Settings& s, Visitor&& visit) {
  constexpr SinceFirst first;
  constexpr double most_size = 65536;
  visit("width", s.width, first, Setting{"features per node", between(1, most_size)});
  visit("heads", s.heads, first,
        Setting{"attention heads; divides the width", between(1, most_size)});
  visit("depth", s.depth, first, Setting{"layers; 0: floor(log2 n) + 1", between(0, 1000)});
  visit("mlp_width", s.mlp_width, first,
        Setting{"hidden features of the MLP", between(1, most_size)});
  visit("mlp_depth", s.mlp_depth, first, Setting{"linear maps in the MLP", between(1, 100)});
  visit("scratch_nodes", s.scratch_nodes, first,
        Setting{"extra nodes with value 0", between(0, most_size)});
  visit("encoding", s.encoding, first, Setting{"positional encoding; empty: the preset's"});
  visit("encoding_size", s.encoding_size, first,
        Setting{"columns of the encoding; 0: its default", between(0, most_size)});

  visit("causal", s.causal, Since{"0.2.0", false},
        Setting{"a node attends to itself and the nodes before it only"});
  visit("split_heads", s.split_heads, Since{"0.2.0", false},
        Setting{"queries and keys of size source / heads, as in GPT"});
  visit("join", s.join, Since{"0.2.0", Join::concatenate},
        Setting{"how attention meets x: MLP([x | o]), or x + o and then + MLP"});
  visit("normalisation", s.normalisation, Since{"0.2.0", Normalisation::none},
        Setting{"LayerNorm before or after each part of a layer"});
  visit("activation", s.activation, Since{"0.2.0", Activation::relu},
        Setting{"activation function of the MLP"});
  visit("positions_added", s.positions_added, Since{"0.2.0", false},
        Setting{"how the input gets positions, where the architecture has them",
                one_of({"joined", "added"}), "positions"});
  visit("tied_output", s.tied_output, Since{"0.2.0", false},
        Setting{"the table of tokens is the decoder too"});
  visit(
      "fixed_tokens", s.fixed_tokens, Since{"0.2.0", false},
      Setting{
          "fixed random codes in place of learned tokens; classes are tied to them", {}, "codes"});
  visit("kinds", s.kinds, Since{"0.3.0", std::string()},
        Setting{
            "kinds of attention by layer, repeated, as relative,data; empty: the architecture's"});
  visit(
      "loops", s.loops, Since{"0.3.0", std::string("1")},
      Setting{
          "times that the layers are applied, with the same weights: a number, n or log2 (of n)"});
  visit(
      "wrap", s.wrap, Since{"0.3.0", Wrap::none},
      Setting{"divide the input by the sample's root mean square, and multiply the output by it"});
  visit("time_steps", s.time_steps, Since{"0.3.0", 0},
        Setting{"time steps of a spiking network; 0: as the architecture has", between(0, 1000)});
  visit("position_range", s.position_range, Since{"0.3.0", 0},
        Setting{"training draws the nodes' positions below this number, in order, and tests space "
                "them evenly; 0: node i is at position i",
                between(0, 1 << 20)});
  visit("value_width", s.value_width, Since{"0.3.0", 0},
        Setting{"features of the stream of values; 0: none, or the width with two streams",
                between(0, most_size)});
  visit(
      "value_mlp_width", s.value_mlp_width, Since{"0.3.0", 0},
      Setting{"hidden features of the values' MLP; 0: the architecture's", between(0, most_size)});
  visit("value_gates", s.value_gates, Since{"0.3.0", ValueGates::none},
        Setting{"what gates of symbols multiply: mix, or hidden features of values too"});
  visit("scores_read_values", s.scores_read_values, Since{"0.3.0", false},
        Setting{"queries and keys of two streams also read the values, divided by their size"});
  visit("symbols_read_values", s.symbols_read_values, Since{"0.3.0", false},
        Setting{"the symbols' MLP also reads the values, divided by their size"});
}

template <class Spec, class Visitor>
void visit_fields(Spec& spec, Visitor&& visit) {
  constexpr SinceFirst first;
  constexpr SinceRouted with_routes;
  visit("real_nodes", spec.real_nodes, first);
  visit("data_columns", spec.data_columns, first);
  visit("output_columns", spec.output_columns, first);
  visit("attention", spec.attention, first);
  visit("positions_in_input", spec.positions_in_input, first);
  visit("rotation", spec.rotation, SinceFlags{});
  visit("scores", spec.scores, SinceFlags{});
  visit("route_places", spec.route_places, with_routes);
  visit_settings(spec, visit);
  visit("biases", spec.biases, Since{"0.2.0", Biases::all});
  visit("reach", spec.reach, Since{"0.2.0", 0});
  visit("vocabulary", spec.vocabulary, Since{"0.2.0", 0});
  visit("read_nodes", spec.read_nodes, Since{"0.2.0", 0});
  visit("loss", spec.loss, Since{"0.2.0", Loss::squared_error});
  visit("source_scale", spec.source_scale, Since{"0.3.0", SourceScale::none});
  visit("score_bias", spec.score_bias, Since{"0.3.0", ScoreBias::none});
  visit("weighting", spec.weighting, Since{"0.3.0", Weighting::softmax});
  visit("score_window", spec.score_window, Since{"0.3.0", 0});
  visit("features", spec.features, Since{"0.3.0", 0});
  visit("landmarks", spec.landmarks, Since{"0.3.0", 0});
  visit("pair_mask", spec.pair_mask, Since{"0.3.0", PairMask::none});
  visit("pair_columns", spec.pair_columns, Since{"0.3.0", 0});
  visit("pair_classes", spec.pair_classes, Since{"0.3.0", 0});
  visit("tokens_and_values", spec.tokens_and_values, Since{"0.3.0", false});
}

// Whether an engine that knows nothing but these fields knows the whole model: every other one has
// its default. An engine refuses a field that it was not written for.
template <class... Member>
bool knows_only(const ModelSpec& spec, Member... members) {
  ModelSpec known;
  ((known.*members = spec.*members), ...);
  return known == spec;
}

// Whether a choice is one of those that an engine knows.
template <class Choice>
bool among(Choice choice, std::initializer_list<Choice> known) {
  return std::find(known.begin(), known.end(), choice) != known.end();
}

}  // namespace posattn
