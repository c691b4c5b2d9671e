#include "posattn/model/plan/plan.h"

#include "posattn/model/tensor_names.h"

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
    plan_.loss = spec_.loss;
    return std::move(plan_);
  }

 private:
  TensorId add(TensorInfo tensor) { return plan_.tensors.add(std::move(tensor)); }

  // Absent biases are zeros that are not trained, so that every engine knows them.
  bool biased() const { return spec_.biases == Biases::all; }

  LinearBlock linear(const std::string& name, int out, int in, bool ends_branch = false) {
    const TensorId weight = add({.name = names::weight(name),
                                 .shape = {out, in},
                                 .initial = Initial::fan_in_uniform,
                                 .fan_in = in,
                                 .maps = true,
                                 .ends_branch = ends_branch});
    const TensorId bias = add({.name = names::bias(name),
                               .shape = {out},
                               .initial = biased() ? Initial::fan_in_uniform : Initial::zero,
                               .fan_in = in,
                               .trained = biased()});
    return {weight, bias, in, out};
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
    return {weight, bias, in, out};
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
    block.positions_joined = spec_.positions_in_input;
    block.positions_added = spec_.positions_added;
    return block;
  }

  Scores scores(int layer) {
    const auto named = [&](std::string_view name) { return names::of_layer(layer, name); };
    const int64_t heads = spec_.heads, nodes = spec_.nodes(), scratch = spec_.scratch_nodes;
    if (spec_.routed) return routes(layer);
    if (spec_.direct_attention) {
      return DirectScores{add({.name = named(names::scores),
                               .shape = {heads, nodes, nodes},
                               .initial = Initial::xavier_uniform,
                               .fan_in = nodes})};
    }
    if (spec_.relative_attention) {
      return RelativeScores{
          add({.name = named(names::relative_scores), .shape = {heads, 2 * spec_.reach - 1}}),
          scratch == 0
              ? no_tensor
              : add({.name = named(names::scratch_scores), .shape = {heads, scratch, scratch + 2}}),
          spec_.reach};
    }
    const LinearBlock query_key = projection(
        named(names::query_key), 2 * spec_.key_size() * spec_.heads, spec_.source_size(), true);
    if (spec_.attention == AttentionSource::positions) return PositionScores{query_key, spec_.rope};
    return DataScores{query_key, spec_.rope,
                      spec_.attention == AttentionSource::data_and_positions};
  }

  RouteScores routes(int layer) {
    std::vector<int64_t> shape = {spec_.heads, spec_.nodes()};
    if (spec_.route_places > 1) shape.push_back(spec_.route_places);
    RouteScores block;
    block.routes = add({.name = names::of_layer(layer, names::routes),
                        .shape = shape,
                        .trained = false,
                        .integers = true});
    if (spec_.route_places > 1) {
      block.weights = add(
          {.name = names::of_layer(layer, names::route_weights), .shape = shape, .trained = false});
    }
    return block;
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
    attention.scores = scores(index);
    attention.heads = spec_.heads;
    attention.key_size = spec_.key_size();
    attention.head_size = spec_.head_size();
    attention.causal = spec_.causal;
    attention.value = projection(named(names::value), spec_.width, spec_.width, biased());
    const bool added = spec_.join == Join::add;
    attention.output = projection(named(names::output), spec_.width, spec_.width, biased(), added);
    if (block.when != Normalisation::none && block.join == Join::add) {
      block.mlp_norm = normalisation(named(names::mlp_norm));
    }
    block.mlp.activation = spec_.activation;
    for (int map = 0; map < spec_.mlp_depth; ++map) {
      const bool last = map == spec_.mlp_depth - 1;
      block.mlp.maps.push_back(
          linear(named(names::mlp_map(map)), last ? spec_.width : spec_.mlp_width,
                 map == 0 ? spec_.joined_size() : spec_.mlp_width, last && added));
    }
    return block;
  }

  HeadBlock head() {
    HeadBlock block;
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
