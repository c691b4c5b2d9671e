#include "posattn/model/plan.h"

#include "posattn/model/attention/rows.h"
#include "posattn/model/attention/score_convolution.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

constexpr int64_t alignment = 16;

// The order of tensors is that of model files, and decides the random numbers of initial values.
class PlanBuilder {
 public:
  explicit PlanBuilder(const ModelSpec& spec) : spec_(spec) {}

  Plan plan() {
    if (spec_.stores_positions()) {
      plan_.positions = add({.name = std::string(names::positions),
                             .shape = {spec_.nodes(), spec_.encoding_size},
                             .initial = Initial::unit_normal_rows,
                             .trained = spec_.encoding == Encoding::learned});
    }
    plan_.input = input();
    for (int layer = 0; layer < spec_.depth; ++layer) plan_.layers.push_back(this->layer(layer));
    plan_.head = head();
    for (size_t layer = 0; layer < spec_.hint_columns.size(); ++layer) {
      plan_.layers[layer].hint = linear(names::hint(static_cast<int>(layer)),
                                        spec_.hint_columns[layer], spec_.width, false, true);
    }
    plan_.loss = spec_.loss;
    return std::move(plan_);
  }

 private:
  TensorId add(TensorInfo tensor) { return plan_.tensors.add(std::move(tensor)); }

  // Absent biases are zeros that are not trained, so that every engine knows them.
  bool biased() const { return spec_.biases == Biases::all; }

  LinearBlock linear(const std::string& name, int out, int in, bool ends_branch = false,
                     bool of_training = false) {
    const TensorId weight = add({.name = names::weight(name),
                                 .shape = {out, in},
                                 .initial = Initial::fan_in_uniform,
                                 .fan_in = in,
                                 .maps = true,
                                 .ends_branch = ends_branch,
                                 .of_training = of_training});
    const TensorId bias = add({.name = names::bias(name),
                               .shape = {out},
                               .initial = biased() ? Initial::fan_in_uniform : Initial::zero,
                               .fan_in = in,
                               .trained = biased(),
                               .of_training = of_training});
    return {weight, bias, in, out, {}};
  }

  // The gain of currents, where it and the map's bias are learned, stands for the normalisation
  // over a batch that spiking networks have: it would couple samples.
  NeuronBlock neurons(const std::string& map, int64_t columns, double gain = 3,
                      double threshold = 1) {
    if (!spec_.spikes()) return {};
    return {add({.name = names::gain(map),
                 .shape = {columns},
                 .initial = Initial::constant,
                 .value = gain}),
            threshold};
  }

  LinearBlock projection(const std::string& name, int out, int in, bool bias_trained,
                         bool ends_branch = false) {
    const TensorId weight = add({.name = names::weight(name),
                                 .shape = {out, in},
                                 .initial = Initial::xavier_uniform,
                                 .fan_in = in,
                                 .maps = true,
                                 .ends_branch = ends_branch});
    const TensorId bias = add({.name = names::bias(name), .shape = {out}, .trained = bias_trained});
    return {weight, bias, in, out, neurons(name, out)};
  }

  NormalisationBlock normalisation(const std::string& name) {
    return {add({.name = names::weight(name), .shape = {spec_.width}, .initial = Initial::one}),
            add({.name = names::bias(name), .shape = {spec_.width}, .trained = biased()})};
  }

  InputBlock input() {
    InputBlock block;
    if (spec_.vocabulary > 0) {
      block.tokens = add({.name = std::string(names::tokens),
                          .shape = {spec_.vocabulary, spec_.width},
                          .initial = Initial::unit_normal_rows,
                          .trained = !spec_.fixed_tokens});
    }
    if (spec_.data_columns > 0 || spec_.positions_in_input) {
      block.values = linear(std::string(names::encoding), spec_.width, spec_.input_size());
    }
    block.tokens_added = spec_.tokens_and_values;
    block.positions_joined = spec_.positions_in_input;
    block.positions_added = spec_.positions_added;
    block.neurons = neurons(std::string(names::encoding), spec_.width);
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
      term.query_key = LinearBlock{
          term.tensors[0], term.tensors[1], spec.encoding_size, 2 * term.key_size * spec.heads, {}};
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

  LayerBlock layer(int index) {
    const auto named = [&](std::string_view name) { return names::of_layer(index, name); };
    LayerBlock block;
    block.join = spec_.join;
    block.when = spec_.normalisation;
    if (block.when != Normalisation::none) {
      block.attention_norm = normalisation(named(names::attention_norm));
    }
    AttentionBlock& attention = block.attention;
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
    attention.value = projection(named(names::value), spec_.width, spec_.width, biased());
    const bool added = spec_.join == Join::add;
    // A quarter of all spikes reaches the threshold, if half of a query's and a key's agree.
    attention.neurons = neurons(named(names::heads), spec_.width,
                                4.0 / (1.0 * kind.key_size() * spec_.nodes()), 0.5);
    attention.output = projection(named(names::output), spec_.width, spec_.width, biased(), added);
    if (block.when != Normalisation::none && block.join == Join::add) {
      block.mlp_norm = normalisation(named(names::mlp_norm));
    }
    block.mlp.activation = spec_.activation;
    for (int map = 0; map < spec_.mlp_depth; ++map) {
      const bool last = map == spec_.mlp_depth - 1;
      LinearBlock& block_map = block.mlp.maps.emplace_back(
          linear(named(names::mlp_map(map)), last ? spec_.width : spec_.mlp_width,
                 map == 0 ? spec_.joined_size() : spec_.mlp_width, last && added));
      block_map.neurons = neurons(named(names::mlp_map(map)), block_map.out);
    }
    return block;
  }

  HeadBlock head() {
    HeadBlock block;
    if (spec_.normalisation == Normalisation::before) {
      block.norm = normalisation(std::string(names::last_norm));
    }
    block.map =
        spec_.tied_output
            ? LinearBlock{plan_.input.tokens, no_tensor, spec_.width, spec_.output_columns, {}}
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
