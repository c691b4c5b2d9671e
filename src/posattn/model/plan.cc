#include "posattn/model/plan.h"

#include <cmath>

#include "posattn/model/attention/rows.h"
#include "posattn/model/attention/score_convolution.h"
#include "posattn/model/degrees.h"
#include "posattn/model/spec/spec_fields.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

constexpr int64_t alignment = 16;

// The order of tensors is that of model files, and decides the random numbers of initial values.
class PlanBuilder {
 public:
  explicit PlanBuilder(const ModelSpec& spec) : spec_(spec) {}

  Plan plan() {
    const bool added_to_symbols = spec_.two_streams() && spec_.positions_added;
    if (spec_.stores_positions()) {
      plan_.positions =
          add({.name = std::string(names::positions),
               .shape = {spec_.nodes(), spec_.encoding_size},
               .initial = added_to_symbols ? Initial::uniform : Initial::unit_normal_rows,
               .value = 1,
               .trained = spec_.encoding == Encoding::learned});
    }
    plan_.input = input();
    for (int layer = 0; layer < spec_.depth; ++layer) plan_.layers.push_back(this->layer(layer));
    plan_.head = head();
    plan_.loss = spec_.loss;
    check_degrees(plan_);
    return std::move(plan_);
  }

 private:
  TensorId add(TensorInfo tensor) { return plan_.tensors.add(std::move(tensor)); }

  // Absent biases are zeros that are not trained, so that every engine knows them.
  bool biased() const { return spec_.biases == Biases::all; }

  // Weights of two streams begin uniform with variance gain^2 / in: small where a branch is added,
  // larger before a ReLU.
  static constexpr double before_branch_ends = 0.5, before_relu = 1.4;
  TensorInfo with_gain(TensorInfo weight, double gain, int in) const {
    if (!spec_.two_streams()) return weight;
    weight.initial = Initial::uniform;
    weight.value = gain * std::sqrt(3.0 / in);
    return weight;
  }

  LinearBlock linear(const std::string& name, int out, int in, bool ends_branch = false,
                     double gain = 1) {
    const TensorId weight = add(with_gain({.name = names::weight(name),
                                           .shape = {out, in},
                                           .initial = Initial::fan_in_uniform,
                                           .fan_in = in,
                                           .maps = true,
                                           .ends_branch = ends_branch},
                                          gain, in));
    const bool drawn = biased() && !spec_.two_streams();
    const TensorId bias = add({.name = names::bias(name),
                               .shape = {out},
                               .initial = drawn ? Initial::fan_in_uniform : Initial::zero,
                               .fan_in = in,
                               .trained = biased()});
    return {weight, bias, in, out};
  }

  LinearBlock projection(const std::string& name, int out, int in, bool bias_trained,
                         bool ends_branch = false) {
    const TensorId weight = add(with_gain({.name = names::weight(name),
                                           .shape = {out, in},
                                           .initial = Initial::xavier_uniform,
                                           .fan_in = in,
                                           .maps = true,
                                           .ends_branch = ends_branch},
                                          ends_branch ? before_branch_ends : 1, in));
    const TensorId bias = add({.name = names::bias(name), .shape = {out}, .trained = bias_trained});
    return {weight, bias, in, out};
  }

  // Of values: a bias would not scale.
  LinearBlock value_map(const std::string& name, int out, int in, double gain = 1) {
    TensorInfo weight{.name = names::weight(name), .shape = {out, in}, .fan_in = in, .maps = true};
    return {add(with_gain(std::move(weight), gain, in)), no_tensor, in, out};
  }

  // Of symbols, for values. It begins as zero, so that a model begins as the one without gates.
  LinearBlock gate(const std::string& name, int out) {
    const TensorId weight =
        add({.name = names::weight(name), .shape = {out, spec_.width}, .maps = true});
    return {weight, add({.name = names::bias(name), .shape = {out}, .trained = biased()}),
            spec_.width, out};
  }

  NormalisationBlock normalisation(const std::string& name) {
    return {add({.name = names::weight(name), .shape = {spec_.width}, .initial = Initial::one}),
            add({.name = names::bias(name), .shape = {spec_.width}, .trained = biased()})};
  }

  InputBlock input() {
    InputBlock block;
    if (spec_.vocabulary > 0) {
      block.tokens =
          add({.name = std::string(names::tokens),
               .shape = {spec_.vocabulary, spec_.width},
               .initial = spec_.two_streams() ? Initial::uniform : Initial::unit_normal_rows,
               .value = 1,
               .trained = !spec_.fixed_tokens});
    }
    if (spec_.input_size() > 0) {
      // What one row of P adds to symbols has the variance 1/3, as a token has; dense rows, 1.
      const bool dense = among(spec_.encoding, {Encoding::binary, Encoding::sinusoidal});
      const double gain = dense ? 1 : std::sqrt(spec_.input_size() / 3.0);
      block.values =
          linear(std::string(names::encoding), spec_.width, spec_.input_size(), false, gain);
    }
    if (spec_.two_streams()) {
      block.stream =
          value_map(std::string(names::value_encoding), spec_.value_width, spec_.data_columns);
    }
    block.tokens_added = spec_.tokens_and_values || spec_.two_streams();
    block.positions_joined = spec_.positions_in_input;
    block.positions_added = spec_.positions_added;
    return block;
  }

  TensorId add_to_layer(int layer, TensorInfo tensor) {
    tensor.name = names::of_layer(layer, tensor.name);
    return add(std::move(tensor));
  }

  // Without biases, those of queries and keys stay where they do no harm: f(c x) = c f(x) holds
  // with them when the source is scaled. A softmax of dot products has had them since 0.2.0.
  DataTerm data_term(int layer, const ModelSpec& spec) {
    const bool softmax = spec.scores == Scores::dot && spec.weighting == Weighting::softmax;
    const bool kept = softmax || spec.source_scale != SourceScale::none;
    DataTerm term{.query_key = projection(names::of_layer(layer, names::query_key),
                                          2 * spec.key_size() * spec.heads, spec.source_size(),
                                          kept || biased()),
                  .scores = spec.scores,
                  .scale = spec.source_scale,
                  .values_joined = spec.values_in_source(),
                  .positions_joined = spec.attention == AttentionSource::data_and_positions,
                  .rope = spec.rotation == Rotation::rope,
                  .key_size = spec.key_size()};
    const DataRow& row = row_of(spec.scores);
    term.factor = row.factor(term.key_size);
    if (row.tensors != nullptr) {
      for (TensorInfo& tensor : row.tensors(spec)) term.head_scale = add_to_layer(layer, tensor);
    }
    return term;
  }

  PositionTerm position_term(int layer, const ModelSpec& spec) {
    PositionTerm term{.kind = spec.position_scores(),
                      .tensors = {},
                      .query_key = {},
                      .key_size = spec.bias_key_size(),
                      .rope = !spec.reads_data() && spec.rotation == Rotation::rope,
                      .reach = spec.reach};
    const PositionRow& row = row_of(term.kind);
    for (TensorInfo& tensor : row.tensors(spec, spec.reads_data())) {
      term.tensors.push_back(add_to_layer(layer, std::move(tensor)));
    }
    if (row.maps_positions) {
      term.query_key = LinearBlock{term.tensors[0], term.tensors[1], spec.encoding_size,
                                   2 * term.key_size * spec.heads};
    }
    return term;
  }

  ScoreConvolutionTerm convolution(int layer, const ModelSpec& spec) {
    ScoreConvolutionTerm term{.channels = score_channels(spec), .window = spec.score_window};
    TensorId* const ids[] = {&term.first, &term.first_bias, &term.last, &term.last_bias};
    size_t next = 0;
    for (TensorInfo& tensor : score_convolution_tensors(spec)) {
      *ids[next++] = add_to_layer(layer, std::move(tensor));
    }
    return term;
  }

  RouteTerm routes(int layer) {
    std::vector<int64_t> shape = {spec_.heads, spec_.nodes()};
    if (spec_.route_places > 1) shape.push_back(spec_.route_places);
    RouteTerm term;
    term.routes = add({.name = names::of_layer(layer, names::routes),
                       .shape = shape,
                       .trained = false,
                       .integers = true});
    if (spec_.route_places > 1) {
      term.weights = add(
          {.name = names::of_layer(layer, names::route_weights), .shape = shape, .trained = false});
    }
    return term;
  }

  AttentionBlock attention(int index, bool mixes) {
    const auto named = [&](std::string_view name) { return names::of_layer(index, name); };
    AttentionBlock attention;
    const ModelSpec kind = spec_.of_layer(index);
    if (kind.routed()) attention.routes = routes(index);
    if (kind.reads_data()) attention.data = data_term(index, kind);
    if (kind.position_scores() != ScoreBias::none) {
      attention.positions = position_term(index, kind);
    }
    attention.weighting = kind.weighting;
    attention.landmarks = kind.landmarks;
    attention.features = kind.features;
    if (kind.score_window > 0) attention.convolution = convolution(index, kind);
    if (const auto tensors = row_of(kind.weighting).tensors) {
      for (TensorInfo& t : tensors(kind)) attention.weighting_tensor = add_to_layer(index, t);
    }
    attention.heads = spec_.heads;
    attention.head_size = spec_.head_size();
    attention.causal = spec_.causal;
    attention.pair_mask = kind.pair_mask;
    if (!mixes) return attention;
    attention.value = projection(named(names::value), spec_.width, spec_.width, biased());
    attention.output = projection(named(names::output), spec_.width, spec_.width, biased(),
                                  spec_.join == Join::add);
    return attention;
  }

  MlpBlock mlp(int index) {
    MlpBlock mlp{.maps = {}, .activation = spec_.activation};
    const int read = spec_.joined_size() + (spec_.symbols_read_values ? spec_.value_width : 0);
    for (int map = 0; map < spec_.mlp_depth; ++map) {
      const bool last = map == spec_.mlp_depth - 1, ends = last && spec_.join == Join::add;
      mlp.maps.push_back(
          linear(names::of_layer(index, names::mlp_map(map)), last ? spec_.width : spec_.mlp_width,
                 map == 0 ? read : spec_.mlp_width, ends, last ? before_branch_ends : before_relu));
    }
    return mlp;
  }

  ValueStreamBlock value_stream(int index) {
    const auto named = [&](std::string_view name) { return names::of_layer(index, name); };
    const int width = spec_.value_width, hidden = spec_.value_mlp_width;
    ValueStreamBlock block;
    block.head_size = width / spec_.heads;
    block.value = value_map(named(names::stream_value), width, width);
    block.output = value_map(named(names::stream_output), width, width);
    if (spec_.value_gates != ValueGates::none) {
      block.mix_gate = gate(named(names::mix_gate), 2 * width);
    }
    if (spec_.value_gates == ValueGates::mix_and_hidden) {
      block.hidden_gate = gate(named(names::hidden_gate), hidden);
    }
    if (hidden == 0) return block;
    block.mlp = {value_map(named(names::stream_mlp_first), hidden, width, before_relu),
                 value_map(named(names::stream_mlp_last), width, hidden, before_branch_ends)};
    return block;
  }

  LayerBlock layer(int index) {
    // What a layer of two streams leaves out, as nobody reads it after the last one: no parameter
    // is without a gradient.
    const bool last = spec_.two_streams() && index == spec_.depth - 1 && spec_.loops == "1";
    const bool classes = spec_.loss == Loss::cross_entropy;
    const bool makes_symbols = !last || classes;
    const bool makes_values =
        spec_.two_streams() && !(last && classes && !spec_.symbols_read_values);
    const bool mixes_symbols =
        makes_symbols || (makes_values && spec_.value_gates != ValueGates::none);
    LayerBlock block;
    block.join = spec_.join;
    block.when = spec_.normalisation;
    if (block.when != Normalisation::none) {
      block.attention_norm = normalisation(names::of_layer(index, names::attention_norm));
    }
    block.attention = attention(index, mixes_symbols);
    if (block.when != Normalisation::none && block.join == Join::add && mixes_symbols) {
      block.mlp_norm = normalisation(names::of_layer(index, names::mlp_norm));
    }
    if (makes_symbols) block.mlp = mlp(index);
    if (makes_values) block.values = value_stream(index);
    block.symbols_read_values = makes_symbols && spec_.symbols_read_values;
    return block;
  }

  HeadBlock head() {
    HeadBlock block;
    if (spec_.two_streams() && spec_.loss == Loss::squared_error) {
      block.map =
          value_map(std::string(names::value_decoding), spec_.output_columns, spec_.value_width);
      block.reads_values = true;
      return block;
    }
    if (spec_.normalisation == Normalisation::before) {
      block.norm = normalisation(std::string(names::last_norm));
    }
    block.map = spec_.tied_output
                    ? LinearBlock{plan_.input.tokens, no_tensor, spec_.width, spec_.output_columns}
                    : linear(std::string(names::decoding), spec_.output_columns, spec_.width);
    return block;
  }

  const ModelSpec& spec_;
  Plan plan_;
};

}  // namespace

int TensorList::add(TensorInfo tensor) {
  tensor.offset = buffer_size_;
  tensor.size = 1;
  for (const int64_t extent : tensor.shape) tensor.size *= extent;
  buffer_size_ += (tensor.size + alignment - 1) / alignment * alignment;
  tensors_.push_back(std::move(tensor));
  return static_cast<int>(tensors_.size()) - 1;
}

Plan plan_of(const ModelSpec& spec) { return PlanBuilder(spec).plan(); }

}  // namespace posattn
