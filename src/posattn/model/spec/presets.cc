// The architectures by name: which fields each decides.
#include <algorithm>
#include <iterator>
#include <sstream>
#include <type_traits>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/model/spec/spec.h"

namespace posattn {
namespace {

using Source = AttentionSource;

// Sources and scores of the paper; the later kinds name what differs from them.
constexpr NamedKind kind_rows[] = {
    {"positions", "queries and keys from positions", {.attention = Source::positions}},
    {"data", "queries and keys from the data", {.attention = Source::data}},
    {"data-and-positions",
     "queries and keys from [data | P]",
     {.attention = Source::data_and_positions}},
    {"rope",
     "queries and keys from the data, rotated by node index",
     {.attention = Source::data, .rotation = Rotation::rope}},
    {"direct", "a learned score for every pair of nodes", {.scores = Scores::direct}},
    {"relative", "a learned score for every distance", {.scores = Scores::distance}},
    {"cosine",
     "cosines of queries and keys from the data, and scores of positions",
     {.attention = Source::data, .scores = Scores::unit, .score_bias = ScoreBias::positions}},
    {"hard",
     "one node is read, by queries and keys from the data",
     {.attention = Source::data, .weighting = Weighting::hard}},
    {"kernel",
     "random features of unit queries and keys from the data, times the exponential of a learned "
     "score for every distance",
     {.attention = Source::data,
      .score_bias = ScoreBias::distance,
      .weighting = Weighting::kernel,
      .features = 64}},
    {"dape",
     "queries and keys from the data, Kerple, and a convolution over the scores of three keys",
     {.attention = Source::data, .score_bias = ScoreBias::kerple, .score_window = 3}},
    {"scaled",
     "queries and keys from [data / their root mean square | P]",
     {.attention = Source::data_and_positions, .source_scale = SourceScale::sample}},
    {"hard-rope",
     "one node is read, by queries and keys from the data, rotated by node index",
     {.attention = Source::data, .rotation = Rotation::rope, .weighting = Weighting::hard}},
    {"hard-cosine",
     "one node is read, by cosines of queries and keys and scores of positions",
     {.attention = Source::data,
      .scores = Scores::unit,
      .score_bias = ScoreBias::positions,
      .weighting = Weighting::hard}},
    {"relu",
     "relu of the scores of the data, divided by the number of nodes",
     {.attention = Source::data, .weighting = Weighting::relu}},
    {"relu-rows",
     "relu of the scores of the data times exp of those of positions, divided by its sum",
     {.attention = Source::data,
      .score_bias = ScoreBias::positions,
      .weighting = Weighting::relu_rows}},
    {"spiking-scores",
     "signs of queries and keys from the data, and scores of positions",
     {.attention = Source::data, .scores = Scores::signs, .score_bias = ScoreBias::positions}},
    {"spiking",
     "how many spikes of queries and keys from the data agree",
     {.attention = Source::data, .scores = Scores::agreements, .weighting = Weighting::sums}},
    {"tropical",
     "the largest sum of a value, a tropical distance and a score of the distance",
     {.attention = Source::data,
      .scores = Scores::tropical,
      .score_bias = ScoreBias::distance,
      .weighting = Weighting::max_plus}},
    {"sums",
     "sums of values, times a learned number for every distance",
     {.scores = Scores::distance, .weighting = Weighting::sums}},
    {"pairs", "scores from the sample's pairs of nodes alone", {.scores = Scores::pairs}},
    {"neighbours",
     "queries and keys from the data, among nodes that an edge connects",
     {.attention = Source::data, .pair_mask = PairMask::edges}},
    {"linear",
     "products of features elu + 1 of queries and keys from the data",
     {.attention = Source::data, .weighting = Weighting::linear}},
    {"low-rank",
     "Nystrom attention from the data with 4 landmarks",
     {.attention = Source::data, .weighting = Weighting::low_rank, .landmarks = 4}},
    {"window",
     "queries and keys from the data, of the 4 nearest nodes on both sides",
     {.attention = Source::data, .score_bias = ScoreBias::window, .reach = 5}},
};

// What a preset of two streams decides; the values of others have no width.
enum class Streams { one, two, gated, linear };

struct PresetRow {
  const char* name;
  const char* description;
  const char* kind;
  bool positions_in_input = false;
  Biases biases = Biases::all;
  bool shown_by_shapes = true;
  int time_steps = 0;  // of a spiking network that is given none
  Streams streams = Streams::one;
};

// The plain names stand before their m-numbers, so that preset_name finds them first. m0 and m5 are
// second names; the authors' standard model has no RoPE.
constexpr PresetRow preset_rows[] = {
    {"positional", "attention from positions only, values alone in the input (M5)", "positions"},
    {"standard", "attention from the data, [values | positions] in the input (M0)", "data", true},
    {"positional-direct", "a learned score matrix per head, values alone in the input", "direct"},
    {"standard-rope", "the standard model with queries and keys rotated by node index", "rope",
     true, Biases::all, false},
    {"m0", "the same as standard", "data", true, Biases::all, false},
    {"m1", "attention from positions, [values | positions] in the input", "positions", true},
    {"m2", "attention from the data, values alone in the input: no positions at all", "data"},
    {"m3", "attention from [data | positions] in every layer, values alone in the input",
     "data-and-positions"},
    {"m4", "attention from the data with RoPE, values alone in the input", "rope"},
    {"m5", "the same as positional", "positions", false, Biases::all, false},
    {"relative", "a learned score per head and distance, values alone in the input", "relative",
     false, Biases::all, false},
    {"homogeneous", "positional without biases: f(c x) = c f(x), exactly", "positions", false,
     Biases::none, false},
    {"standard-no-bias", "standard without biases: the control of homogeneous", "data", true,
     Biases::none, false},
    {"scale-free",
     "cosines of the data and scores of positions, no biases: f(c x) = c f(x), exactly", "cosine",
     false, Biases::none, false},
    {"scale-free-joint",
     "queries and keys from scaled data and positions, no biases: f(c x) = c f(x), exactly",
     "scaled", false, Biases::none, false},
    {"hard", "standard that reads one node, drawn in training, the best in tests", "hard", true,
     Biases::all, false},
    {"hard-rope", "hard with RoPE in place of positions, no biases: f(c x) = c f(x), exactly",
     "hard-rope", false, Biases::none, false},
    {"hard-cosine", "scale-free that reads one node, no biases: f(c x) = c f(x), exactly",
     "hard-cosine", false, Biases::none, false},
    {"relu", "standard with relu(scores) / nodes in place of the softmax", "relu", true,
     Biases::all, false},
    {"relu-rows", "relu(scores) exp(scores of positions) by rows, no biases: f(c x) = c f(x)",
     "relu-rows", false, Biases::none, false},
    {"spiking-scores", "signs of queries and keys, scores of positions, no biases: f(c x) = c f(x)",
     "spiking-scores", false, Biases::none, false},
    {"spiking", "neurons that fire over 4 time steps or --time-steps, residuals, counts of spikes",
     "spiking", false, Biases::all, false, 4},
    {"tropical", "max-plus attention by tropical distances, scores by distance, no biases",
     "tropical", false, Biases::none, false},
    {"sums", "relative whose heads add up, no biases: sums at every length, f(c x) = c f(x)",
     "sums", false, Biases::none, false},
    {"kernel",
     "random features of unit queries and keys with a learned score per distance, no biases: "
     "f(c x) = c f(x), exactly",
     "kernel", false, Biases::none, false},
    {"dape",
     "the data's scores and Kerple's by distance, mixed over neighbouring keys; for --causal",
     "dape", false, Biases::all, false},
    {"structural",
     "attention from the sample's pairs of nodes, no biases: f(c x) = c f(x), exactly", "pairs",
     false, Biases::none, false},
    {"low-rank", "attention from the data by 4 landmarks, values alone in the input", "low-rank",
     false, Biases::all, false},
    {"two-streams-gated",
     "two-streams whose scores read the values' proportions, with gates of symbols on values",
     "data", true, Biases::all, false, 0, Streams::gated},
    {"two-streams-linear",
     "two-streams without an MLP of values: f(s, x) = M(s) x, a matrix that symbols decide", "data",
     true, Biases::all, false, 0, Streams::linear},
    {"two-streams",
     "attention from tokens and positions alone, which mixes values too: f(s, c x) = c f(s, x)",
     "data", true, Biases::all, false, 0, Streams::two},
};

ModelSpec with_streams(Streams streams, ModelSpec spec) {
  if (streams == Streams::one) return spec;
  spec.join = Join::add;
  spec.normalisation = Normalisation::before;
  if (spec.value_width == 0) spec.value_width = spec.width;
  if (streams == Streams::linear) {
    spec.value_mlp_width = 0;
  } else if (spec.value_mlp_width == 0) {
    spec.value_mlp_width = spec.mlp_width;
  }
  if (streams == Streams::gated) {
    spec.value_gates = ValueGates::mix_and_hidden;
    spec.scores_read_values = true;
  }
  return spec;
}

// The fields that a preset decides.
ModelSpec with_preset(const PresetRow& row, ModelSpec spec) {
  const int reach = spec.reach;  // the kind's own, or as it is
  static_cast<AttentionChoices&>(spec) = kind_of(row.kind);
  if (spec.reach == 0) spec.reach = reach;
  spec.positions_in_input = row.positions_in_input && !spec.positions_added;
  spec.positions_added = row.positions_in_input && spec.positions_added;
  spec.biases = row.biases;
  if (row.time_steps > 0) {
    spec.join = Join::add;
    if (spec.time_steps == 0) spec.time_steps = row.time_steps;
  }
  return with_streams(row.streams, spec);
}

template <class Choice>
bool set_choice(std::string_view name, std::string_view wanted, std::string_view value,
                Choice& choice) {
  if (name == wanted) choice = from_name<Choice>(value);
  return name == wanted;
}

bool set_number(std::string_view name, std::string_view wanted, const std::string& value,
                int& number) {
  if (name == wanted) number = static_cast<int>(parse_integer(value, wanted));
  return name == wanted;
}

// "score-bias=positions"
void change(std::string_view text, AttentionChoices& kind) {
  const size_t equals = std::min(text.find('='), text.size());
  std::string name(text.substr(0, equals)), value(text.substr(std::min(equals + 1, text.size())));
  std::ranges::replace(name, '-', '_');
  std::ranges::replace(value, '-', '_');
  if (!(set_choice(name, "source", value, kind.attention) ||
        set_choice(name, "source_scale", value, kind.source_scale) ||
        set_choice(name, "scores", value, kind.scores) ||
        set_choice(name, "rotation", value, kind.rotation) ||
        set_choice(name, "score_bias", value, kind.score_bias) ||
        set_choice(name, "weighting", value, kind.weighting) ||
        set_choice(name, "pair_mask", value, kind.pair_mask) ||
        set_number(name, "score_window", value, kind.score_window) ||
        set_number(name, "features", value, kind.features) ||
        set_number(name, "landmarks", value, kind.landmarks) ||
        set_number(name, "reach", value, kind.reach))) {
    throw unknown_name(ExitCode::usage, "choice of attention", text.substr(0, equals),
                       {"source", "source-scale", "scores", "rotation", "score-bias", "weighting",
                        "score-window", "features", "landmarks", "reach", "pair-mask"});
  }
}

}  // namespace

const std::vector<NamedKind>& attention_kinds() {
  static const std::vector<NamedKind> list(std::begin(kind_rows), std::end(kind_rows));
  return list;
}

AttentionChoices kind_of(std::string_view text) {
  std::istringstream stream{std::string(text)};
  const std::vector<std::string> words(std::istream_iterator<std::string>(stream), {});
  std::vector<std::string> known;
  for (const NamedKind& row : kind_rows) {
    known.emplace_back(row.name);
    if (words.empty() || row.name != words.front()) continue;
    AttentionChoices kind = row.choices;
    for (size_t i = 1; i < words.size(); ++i) change(words[i], kind);
    return kind;
  }
  throw unknown_name(ExitCode::usage, "kind of attention", words.empty() ? "" : words.front(),
                     known);
}

std::string kind_text(const AttentionChoices& kind) {
  for (const NamedKind& row : kind_rows) {
    if (row.choices == kind) return std::string(row.name);
  }
  const AttentionChoices plain{.attention = kind.attention};
  std::string text(to_string(kind.attention));
  const auto add = [&](const char* name, auto value, auto usual) {
    if (value == usual) return;
    if constexpr (std::is_same_v<decltype(value), int>) {
      text += std::string(" ") + name + "=" + std::to_string(value);
    } else {
      text += std::string(" ") + name + "=" + std::string(to_string(value));
    }
  };
  add("source-scale", kind.source_scale, plain.source_scale);
  add("scores", kind.scores, plain.scores);
  add("rotation", kind.rotation, plain.rotation);
  add("score-bias", kind.score_bias, plain.score_bias);
  add("weighting", kind.weighting, plain.weighting);
  add("score-window", kind.score_window, plain.score_window);
  add("features", kind.features, plain.features);
  add("landmarks", kind.landmarks, plain.landmarks);
  std::ranges::replace(text, '_', '-');
  return text;
}

const std::vector<Preset>& presets() {
  static const std::vector<Preset> list = [] {
    std::vector<Preset> all;
    for (const PresetRow& row : preset_rows) {
      all.push_back({row.name, row.description, row.shown_by_shapes});
    }
    return all;
  }();
  return list;
}

// A setting that the preset would not follow is refused.
void check_values(const PresetRow& row, const ModelSpec& spec) {
  const auto refuse = [&](const char* field, int value) {
    throw Error(
        ExitCode::configuration,
        std::string(field) + " = " + std::to_string(value) + " for architecture '" + row.name + "'",
        "0, or another architecture", "as --architecture two-streams");
  };
  if (row.streams == Streams::one && spec.value_width > 0) {
    refuse("value_width", spec.value_width);
  }
  if (row.streams == Streams::linear && spec.value_mlp_width > 0) {
    refuse("value_mlp_width", spec.value_mlp_width);
  }
}

void apply_preset(std::string_view name, ModelSpec& spec) {
  std::vector<std::string> known;
  for (const PresetRow& row : preset_rows) {
    if (row.name == name) {
      check_values(row, spec);
      spec = with_preset(row, spec);
      return;
    }
    known.emplace_back(row.name);
  }
  throw unknown_name(ExitCode::usage, "architecture", name, known);
}

std::string preset_name(const ModelSpec& spec) {
  if (!spec.kinds.empty()) return "custom";
  ModelSpec scored = spec;
  if (spec.routed()) scored.scores = Scores::dot;  // routes are a saturated softmax of such scores
  for (const PresetRow& row : preset_rows) {
    if ((row.streams != Streams::one) != scored.two_streams()) continue;
    if (with_preset(row, scored) == scored) return row.name;
  }
  return "custom";
}

}  // namespace posattn
