#include "posattn/model/spec/spec_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "posattn/model/spec/spec_fields.h"

namespace posattn {
namespace {

// Limits that keep every product below within int64_t and refuse what no machine could hold.
constexpr int node_limit = 1 << 20;
constexpr int width_limit = 1 << 16;
constexpr int depth_limit = 1 << 12;
constexpr int mlp_depth_limit = 64;
// Memory of 32 bits holds fewer, several times over while training.
constexpr bool narrow = sizeof(size_t) < 8;
constexpr int64_t element_limit = int64_t{1} << (narrow ? 25 : 33);

void check_encoding_size(const ModelSpec& spec) {
  const int size = spec.encoding_size;
  switch (spec.encoding) {
    case Encoding::one_hot:
      if (size != spec.nodes()) {
        throw impossible(fmt::format("encoding_size = {} for a one-hot encoding", size),
                         fmt::format("the number of nodes, {}", spec.nodes()));
      }
      return;
    case Encoding::binary:
      check_size("encoding_size (binary)", size, bits_for(spec.nodes()), 31);
      return;
    case Encoding::sinusoidal:
      check_size("encoding_size (sinusoidal)", size, 2, node_limit);
      if (size % 2 != 0) {
        throw impossible(fmt::format("encoding_size = {} for a sinusoidal encoding", size),
                         "an even number: pairs of sine and cosine");
      }
      return;
    default:
      check_size("encoding_size", size, 1, node_limit);
  }
}

// Elements of all tensors and of P. Every factor has been checked against its limit, so one layer
// stays below 2^60 and only the product with the depth needs care.
void check_total(const ModelSpec& spec) {
  const int64_t nodes = spec.nodes(), width = spec.width, heads = spec.heads;
  const int64_t hidden = spec.mlp_width;
  const auto of_query_key = [&](int64_t source, int64_t size) {
    return 2 * heads * size * (source + 1) + heads;
  };
  int64_t attention = spec.routed() ? 2 * heads * nodes * spec.route_places : 0;
  if (spec.reads_data()) attention += of_query_key(spec.source_size(), spec.key_size());
  switch (spec.position_scores()) {
    case ScoreBias::none:
      break;
    case ScoreBias::positions:
      attention += of_query_key(spec.encoding_size, spec.bias_key_size());
      break;
    case ScoreBias::direct:
      attention += heads * nodes * nodes;
      break;
    case ScoreBias::distance:
      attention += 2 * heads * spec.reach;
      break;
    case ScoreBias::pairs:
      attention += heads * (int64_t{1} * spec.pair_columns + spec.pair_classes);
      attention += heads * spec.scratch_nodes * (int64_t{2} + spec.scratch_nodes);
      break;
    default:  // a few numbers of each head
      attention += 1000 * heads;
  }
  attention += heads * spec.features * spec.key_size() + 100 * heads * spec.score_window;
  const int64_t norms = spec.normalisation == Normalisation::none ? 0 : 4 * width;
  const int64_t values = spec.value_width, value_hidden = spec.value_mlp_width;
  attention += 2 * values * (values + value_hidden) + (width + 1) * (2 * values + value_hidden) +
               (spec.symbols_read_values ? hidden * values : 0);
  const int64_t layer = attention + 2 * width * (width + 1) + hidden * (spec.joined_size() + 1) +
                        (spec.mlp_depth - 2) * hidden * (hidden + 1) + width * (hidden + 1) + norms;
  const int64_t rest = width * (spec.input_size() + 1) + spec.output_columns * (width + 1) +
                       width * spec.vocabulary +
                       values * (int64_t{1} * spec.data_columns + spec.output_columns) +
                       (spec.uses_positions() && (!spec.routed() || spec.stores_positions())
                            ? nodes * spec.encoding_size
                            : 0);
  if (layer > element_limit / spec.depth || layer * spec.depth + rest > element_limit) {
    throw impossible("the model is too large", fmt::format("at most {} parameters", element_limit),
                     "reduce nodes, width, heads or depth, or use a smaller position encoding");
  }
  if (narrow && !spec.routed() && nodes * nodes > element_limit / (spec.depth * heads)) {
    throw impossible("the attention matrices are too large for 32 bits",
                     fmt::format("at most {} numbers in all", element_limit), "reduce the nodes");
  }
}

void check_routes(const ModelSpec& spec) {
  if (!spec.routed()) {
    check_size("route_places (without routes)", spec.route_places, 1, 1);
    return;
  }
  check_size("route_places", spec.route_places, 1, node_limit);
  const auto expect = [](bool holds, std::string_view found, const char* expected) {
    if (!holds) throw impossible(fmt::format("routes with {}", found), expected);
  };
  expect(spec.attention == AttentionSource::positions,
         fmt::format("attention from {}", to_string(spec.attention)),
         "attention = positions: fixed places do not depend on the data");
  expect(spec.rotation == Rotation::none, "RoPE",
         "no RoPE: there are no queries and keys to rotate");
  expect(spec.encoding == (spec.positions_added ? Encoding::learned : Encoding::one_hot),
         fmt::format("{} positions", to_string(spec.encoding)),
         "one-hot positions, or learned ones that are added");
  expect(spec.scratch_nodes >= 1, "no scratch node",
         "at least one: the last is read where there is nothing to read");
  using S = ModelSpec;
  expect(knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::data_columns, &S::output_columns,
                    &S::positions_in_input, &S::positions_added, &S::encoding, &S::encoding_size,
                    &S::scores, &S::route_places, &S::width, &S::heads, &S::depth, &S::mlp_width,
                    &S::mlp_depth, &S::vocabulary, &S::tokens_and_values, &S::read_nodes, &S::loss),
         "a layer that is not the paper's",
         "concatenation, ReLU, all biases: what compiled programs are made of");
}

// Learned scores replace queries and keys, so both cannot be given.
void check_learned_scores(const ModelSpec& spec, const char* name) {
  if (spec.attention != AttentionSource::positions) {
    throw impossible(
        fmt::format("{} attention with attention from {}", name, to_string(spec.attention)),
        "attention = positions: learned scores do not depend on the data");
  }
  if (spec.rotation == Rotation::rope) {
    throw impossible(fmt::format("{} attention with RoPE", name),
                     "one of the two: there are no queries and keys to rotate");
  }
  if (spec.split_heads) {
    throw impossible(fmt::format("{} attention with split heads", name),
                     "one of the two: there are no queries and keys to split");
  }
}

void check_heads(const ModelSpec& spec) {
  if (spec.width % spec.heads != 0) {
    throw impossible(fmt::format("{} heads do not divide the width {}", spec.heads, spec.width),
                     "heads that divide the width",
                     "every head carries width / heads columns of the values");
  }
  if (spec.split_heads && spec.source_size() % spec.heads != 0) {
    throw impossible(
        fmt::format("split heads: {} heads do not divide the {} columns of queries and keys",
                    spec.heads, spec.source_size()),
        "heads that divide both");
  }
  if (spec.split_heads && spec.score_bias == ScoreBias::positions &&
      spec.encoding_size % spec.heads != 0) {
    throw impossible(fmt::format("split heads: {} heads do not divide the {} columns of positions",
                                 spec.heads, spec.encoding_size),
                     "heads that divide both");
  }
}

void check_tokens(const ModelSpec& spec) {
  check_size("vocabulary", spec.vocabulary, 0, node_limit);
  if (spec.tied_output && (spec.vocabulary == 0 || spec.vocabulary != spec.output_columns)) {
    throw impossible(fmt::format("a tied output with {} tokens and {} output columns",
                                 spec.vocabulary, spec.output_columns),
                     "as many outputs as tokens, at least 1");
  }
  if (spec.fixed_tokens && spec.vocabulary == 0) {
    throw impossible("fixed codes of tokens without tokens", "a vocabulary of at least 1");
  }
  if (spec.tokens_and_values && (spec.vocabulary == 0 || spec.data_columns == 0)) {
    throw impossible(fmt::format("nodes of tokens and numbers, with {} tokens and {} numbers",
                                 spec.vocabulary, spec.data_columns),
                     "at least 1 of both");
  }
  if (!spec.positions_added) return;
  if (spec.positions_in_input) {
    throw impossible("positions both added to the input and part of it", "one of the two");
  }
  if (spec.encoding_size != spec.width) {
    throw impossible(fmt::format("encoding_size = {} for added positions", spec.encoding_size),
                     fmt::format("the width, {}", spec.width));
  }
}

// Scores meet those of neighbours before they are weights, so there must be scores.
void check_score_window(const ModelSpec& spec) {
  if (spec.score_window == 0) return;
  check_size("score_window", spec.score_window, 1, 31);
  const std::string what = fmt::format("score_window = {}", spec.score_window);
  if (spec.score_window % 2 == 0) {
    throw impossible(what, "an odd number: as many keys on either side");
  }
  if (!spec.reads_data()) {
    throw impossible(what + " with attention from positions",
                     "attention from data, or from data and positions");
  }
  if (among(spec.weighting, {Weighting::kernel, Weighting::linear, Weighting::low_rank})) {
    throw impossible(fmt::format("{} with the weighting '{}'", what, to_string(spec.weighting)),
                     "a weighting of scores, as softmax", "features never become a score");
  }
}

void check_features(const ModelSpec& spec) {
  if (spec.weighting != Weighting::kernel) {
    check_size("features (without the weighting 'kernel')", spec.features, 0, 0);
    return;
  }
  check_size("features (of the weighting 'kernel')", spec.features, 1, width_limit);
  if (!spec.reads_data()) {
    throw impossible("the weighting 'kernel' with attention from positions",
                     "attention from data, or from data and positions");
  }
  if (spec.scores != Scores::dot) {
    throw impossible(fmt::format("the weighting 'kernel' with scores '{}'", to_string(spec.scores)),
                     "scores 'dot'", "it divides queries and keys by their size itself");
  }
}

// The border of the network divides a sample by its size. Classes have none, and tokens stay as
// they are.
void check_wrap(const ModelSpec& spec) {
  if (spec.wrap == Wrap::none) return;
  const auto refuse = [](const char* what) {
    throw impossible(fmt::format("wrap 'scale' with {}", what),
                     "numbers in and out: their size is divided out and multiplied back");
  };
  if (spec.data_columns == 0) refuse("tokens alone");
  if (spec.loss != Loss::squared_error) refuse("classes");
}

// What carries symbols and values, and how the two may meet.
void check_streams(const ModelSpec& spec) {
  const auto refuse = [](const std::string& what, const char* expected, const char* hint = "") {
    throw impossible("two streams with " + what, expected, hint);
  };
  if (!spec.two_streams()) {
    check_size("value_width", spec.value_width, 0, width_limit);
    if (spec.value_mlp_width != 0 || spec.value_gates != ValueGates::none ||
        spec.scores_read_values || spec.symbols_read_values) {
      throw impossible("settings of values in a model of one stream", "two streams",
                       "as --architecture two-streams");
    }
    return;
  }
  check_size("value_width", spec.value_width, 1, width_limit);
  check_size("value_mlp_width", spec.value_mlp_width, 0, width_limit);
  if (spec.value_width % spec.heads != 0) {
    refuse(fmt::format("{} heads for values of width {}", spec.heads, spec.value_width),
           "heads that divide both widths");
  }
  if (spec.join != Join::add || spec.normalisation == Normalisation::after) {
    refuse(fmt::format("join '{}' and normalisation '{}'", to_string(spec.join),
                       to_string(spec.normalisation)),
           "'add', and 'before' or 'none'");
  }
  if (spec.data_columns == 0) refuse("no input numbers", "at least 1: they are the values");
  if (spec.vocabulary == 0 && !spec.positions_in_input && !spec.positions_added) {
    refuse("neither tokens nor positions", "at least one of the two: they are the symbols");
  }
  if (spec.value_gates == ValueGates::mix_and_hidden && spec.value_mlp_width == 0) {
    refuse("gates of hidden features, and no MLP of values", "value_gates = mix");
  }
  if (spec.loss == Loss::squared_error && spec.tied_output) {
    refuse("a tied output of numbers", "an output that is not tied: values answer");
  }
  if (spec.loss != Loss::squared_error && !spec.scores_read_values && !spec.symbols_read_values) {
    refuse("classes, which symbols answer, and symbols that never see the values",
           "scores_read_values or symbols_read_values");
  }
  if (!spec.reads_data()) {
    refuse("attention from positions", "attention from data, which are the symbols");
  }
  if (spec.source_scale != SourceScale::none) {
    refuse(fmt::format("source scale '{}'", to_string(spec.source_scale)),
           "none: symbols do not scale");
  }
}

// Pairs are a term of the scores and a mask on them: of weightings that are made of such scores.
void check_reads_pairs(const ModelSpec& spec) {
  const bool sums = spec.weighting == Weighting::sums && spec.pair_mask == PairMask::none;
  if (!sums && spec.weighting != Weighting::softmax && spec.weighting != Weighting::hard) {
    throw impossible(fmt::format("weighting '{}' with pairs of nodes", to_string(spec.weighting)),
                     "softmax, hard, or sums without a mask");
  }
  if (spec.score_window > 0) {
    throw impossible(fmt::format("score_window = {} with pairs of nodes", spec.score_window),
                     "no window over the scores: neighbouring keys need not be connected");
  }
}

// Weightings that are products of what is made of queries and of keys: of the data, without scores
// that could be added or changed.
void check_factors(const ModelSpec& spec) {
  const bool low_rank = spec.weighting == Weighting::low_rank;
  if (!low_rank) {
    check_size("landmarks (without the weighting low_rank)", spec.landmarks, 0, 0);
    if (spec.weighting != Weighting::linear) return;
  }
  const auto refuse = [&](const std::string& what, const char* expected) {
    throw impossible(fmt::format("{} attention {}", to_string(spec.weighting), what), expected);
  };
  if (!spec.reads_data()) {
    refuse("from positions", "attention from data, or from data and positions");
  }
  if (!among(spec.scores, {Scores::dot, Scores::unit, Scores::direction})) {
    refuse(fmt::format("with scores '{}'", to_string(spec.scores)), "dot, unit or direction");
  }
  if (spec.score_bias != ScoreBias::none) {
    refuse(fmt::format("with score bias '{}'", to_string(spec.score_bias)),
           "none: there are no scores of pairs");
  }
  if (!low_rank) return;
  if (spec.causal) {
    refuse("that is causal", "no --causal: a landmark is a mean of earlier and later nodes");
  }
  check_size("landmarks", spec.landmarks, 1, spec.nodes());
}

// What charges neurons, and what they do with it.
void check_spikes(const ModelSpec& spec) {
  const bool counts = spec.scores == Scores::agreements;
  if (!counts && !spec.spikes()) return;
  const auto expect = [](bool holds, const std::string& found, const char* expected) {
    if (!holds) throw impossible(found, expected, "as --architecture spiking has it");
  };
  expect(spec.spikes(), "scores 'agreements' without spikes", "time_steps of at least 1");
  const std::string what = fmt::format("time_steps = {}", spec.time_steps);
  expect(counts, fmt::format("{} with scores '{}'", what, to_string(spec.scores)),
         "scores 'agreements', of spikes, or no time steps");
  expect(spec.weighting == Weighting::sums,
         fmt::format("{} with weighting '{}'", what, to_string(spec.weighting)), "sums");
  expect(spec.join == Join::add, what + " with attention that is joined to x",
         "join = add: spikes are added to the state");
  using S = ModelSpec;
  expect(spec.score_bias != ScoreBias::window &&
             knows_only(
                 spec, &S::real_nodes, &S::scratch_nodes, &S::data_columns, &S::output_columns,
                 &S::attention, &S::positions_in_input, &S::positions_added, &S::encoding,
                 &S::encoding_size, &S::position_range, &S::scores, &S::score_bias, &S::weighting,
                 &S::reach, &S::width, &S::heads, &S::depth, &S::mlp_width, &S::mlp_depth,
                 &S::biases, &S::causal, &S::split_heads, &S::join, &S::vocabulary, &S::tied_output,
                 &S::fixed_tokens, &S::read_nodes, &S::loss, &S::loops, &S::wrap, &S::time_steps),
         what + " with a choice that has no spikes", "neurons in place of activations and norms");
}

void check_position_range(const ModelSpec& spec) {
  if (spec.position_range == 0) return;
  check_size("position_range", spec.position_range, spec.real_nodes, node_limit);
  const std::string what = fmt::format("position_range = {}", spec.position_range);
  if (spec.uses_positions()) {
    if (spec.encoding == Encoding::sinusoidal) return;
    throw impossible(fmt::format("{} with the encoding '{}'", what, to_string(spec.encoding)),
                     "the encoding sinusoidal, or RoPE alone");
  }
  if (!spec.any_layer([](const auto& kind) { return kind.rotation == Rotation::rope; })) {
    throw impossible(what + " in a model without such positions",
                     "the encoding sinusoidal, or RoPE");
  }
}

// The choices of one layer fit together.
void check_choices(const ModelSpec& spec) {
  if (spec.scores == Scores::direct) check_learned_scores(spec, "direct");
  if (spec.scores == Scores::distance) check_learned_scores(spec, "relative");
  if (spec.scores == Scores::pairs) check_learned_scores(spec, "pair");
  if (spec.reads_pairs()) check_reads_pairs(spec);
  check_streams(spec);
  if (spec.attention == AttentionSource::positions) {
    const auto refuse = [](const std::string& choice) {
      throw impossible(choice + " with attention from positions",
                       "attention from data, or from data and positions");
    };
    if (spec.source_scale != SourceScale::none) {
      refuse(fmt::format("source scale '{}'", to_string(spec.source_scale)));
    }
    if (spec.has_query_key() && spec.scores != Scores::dot) {
      refuse(fmt::format("scores '{}'", to_string(spec.scores)));
    }
    if (spec.score_bias != ScoreBias::none) {
      refuse(fmt::format("score bias '{}'", to_string(spec.score_bias)));
    }
    if (spec.weighting == Weighting::relu_rows) {  // scores of positions are factors of weights
      refuse(fmt::format("weighting '{}'", to_string(spec.weighting)));
    }
  }
  if (spec.rotation == Rotation::rope &&
      among(spec.scores, {Scores::signs, Scores::tropical, Scores::agreements})) {
    throw impossible(fmt::format("scores '{}' with RoPE", to_string(spec.scores)),
                     "scores dot, unit or direction",
                     "only products of turned queries and keys depend on distances");
  }
  if (spec.scores == Scores::unit && spec.weighting == Weighting::relu_rows) {
    throw impossible("scores 'unit' with weighting 'relu_rows'",
                     "scores 'direction', the same without a learned factor",
                     "rows divided by their sum do not see a factor of the scores");
  }
  check_score_window(spec);
  check_features(spec);
  if (spec.reads_distances()) check_size("reach", spec.reach, 1, node_limit);
  if (spec.score_bias == ScoreBias::window && spec.score_window != 0) {
    throw impossible("a window with a convolution over scores", "one of the two");
  }
  check_factors(spec);
  check_spikes(spec);
  check_routes(spec);
  check_heads(spec);
  check_total(spec);
}

}  // namespace

Error impossible(std::string what, std::string expected, std::string hint) {
  return Error(ExitCode::configuration, std::move(what), std::move(expected), std::move(hint));
}

void check_size(const char* name, int value, int low, int high) {
  if (value < low || value > high) {
    throw impossible(fmt::format("{} = {}", name, value), fmt::format("{} to {}", low, high));
  }
}

int bits_for(int nodes) {
  return std::max(1, static_cast<int>(std::bit_width(static_cast<unsigned>(nodes - 1))));
}

void check_sizes(const ModelSpec& spec) {
  check_size("real_nodes", spec.real_nodes, 1, node_limit);
  check_size("scratch_nodes", spec.scratch_nodes, 0, node_limit);
  check_size("nodes (real and scratch)", spec.nodes(), 1, node_limit + (spec.routed() ? 1 : 0));
  check_size("data_columns", spec.data_columns, spec.vocabulary > 0 ? 0 : 1, node_limit);
  check_size("output_columns", spec.output_columns, 1, node_limit);
  check_size("read_nodes", spec.read_nodes, -spec.real_nodes, spec.real_nodes);
  check_size("width", spec.width, 1, width_limit);
  check_size("heads", spec.heads, 1, width_limit);
  check_size("depth", spec.depth, 1, depth_limit);
  check_size("mlp_width", spec.mlp_width, 1, width_limit);
  check_size("mlp_depth", spec.mlp_depth, 2, mlp_depth_limit);
}

void check_loops(const ModelSpec& spec) {
  constexpr int most = 1000;
  if (spec.loops == "n" || spec.loops == "log2") return;
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool number = !spec.loops.empty() && spec.loops.size() < 5 && spec.loops[0] != '0' &&
                      std::ranges::all_of(spec.loops, digit);
  if (!number || spec.loops_at(spec.real_nodes) > most) {
    throw impossible(fmt::format("loops = '{}'", spec.loops),
                     fmt::format("1 to {}, n or log2", most));
  }
}

void check_hints(const ModelSpec& spec) {
  if (spec.hint_columns.empty()) return;
  if (spec.loops != "1" || static_cast<int>(spec.hint_columns.size()) != spec.depth) {
    throw impossible(fmt::format("hints of {} layers", spec.hint_columns.size()),
                     fmt::format("{}, each applied once", spec.depth));
  }
}

void check_resolved(const ModelSpec& spec) {
  const bool by_distance =
      spec.any_layer([](const AttentionChoices& kind) { return kind.reads_distances(); });
  check_size(by_distance ? "reach" : "reach (without relative attention)", spec.reach,
             by_distance ? 1 : 0, by_distance ? node_limit : 0);
  check_encoding_size(spec);
  check_tokens(spec);
  check_wrap(spec);
  check_size("time_steps", spec.time_steps, 0, 1000);
  check_position_range(spec);
  const int different = spec.kinds.empty() ? 1 : spec.depth;
  for (int layer = 0; layer < different; ++layer) check_choices(spec.of_layer(layer));
}

}  // namespace posattn
