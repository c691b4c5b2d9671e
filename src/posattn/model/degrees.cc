#include "posattn/model/degrees.h"

#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/model/attention/rows.h"
#include "posattn/model/spec/spec_fields.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

class DegreeWalk {
 public:
  explicit DegreeWalk(const Plan& plan) : plan_(plan) {}

  // After a fault the walk goes on as if there were none: each attention says what it is by itself.
  Degrees take() {
    state_ = plan_.input.stream ? 0 : 1;
    input();
    for (size_t layer = 0; layer < plan_.layers.size(); ++layer) {
      this->layer(static_cast<int>(layer), plan_.layers[layer]);
    }
    const HeadBlock& head = plan_.head;
    if (head.norm) normalise(names::last_norm);
    found_.output = head.reads_values ? 1 : state_;
    map(head.map, found_.output);
    return std::move(found_);
  }

 private:
  void fault(std::string reason) {
    if (found_.fault.empty()) found_.fault = std::move(reason);
  }

  void map(const LinearBlock& block, int degree) {
    if (degree != 0 && block.bias != no_tensor) found_.biases.push_back(block.bias);
  }

  // Of the state, which would lose its degree.
  void normalise(std::string_view name) {
    if (state_ != 0) fault(fmt::format("LayerNorm, which removes the scale ({})", name));
  }

  void activate(Activation activation, int degree) {
    if (degree != 0 && activation != Activation::relu) {
      fault(fmt::format("{}: only ReLUs commute with scaling", to_string(activation)));
    }
  }

  // Positions and tokens are added to the state.
  void input() {
    const InputBlock& block = plan_.input;
    if (block.values) map(*block.values, state_);
    if (block.stream) map(*block.stream, 1);
    if (state_ == 0) return;
    if (block.positions_joined || block.positions_added) {
      fault(fmt::format("positions in the input, which do not scale with its values ({})",
                        block.positions_added ? "positions" : names::weight(names::encoding)));
    }
    if (block.tokens != no_tensor) {
      fault(fmt::format("tokens, which have no scale ({})", names::tokens));
    }
  }

  void layer(int index, const LayerBlock& block) {
    if (block.attention_norm) normalise(names::of_layer(index, names::attention_norm));
    const AttentionBlock& attention = block.attention;
    const std::string reason = this->attention(attention, block.values ? 1 : state_);
    if (!reason.empty()) {
      const std::string map = names::of_layer(index, names::query_key);
      found_.layers.back().fault = fmt::format("{} ({})", reason, names::weight(map));
    }
    if (attention.mixes()) {
      map(attention.value, state_);
      map(attention.output, state_);
    }
    if (block.mlp_norm) normalise(names::of_layer(index, names::mlp_norm));
    for (const LinearBlock& linear : block.mlp.maps) map(linear, state_);
    if (!block.mlp.maps.empty()) activate(block.mlp.activation, state_);
    if (const auto& values = block.values) {
      map(values->value, 1);
      map(values->output, 1);
      for (const LinearBlock& linear : values->mlp) map(linear, 1);
    }
  }

  // Of queries and keys: the state or what it was made of by division, and positions, both of one
  // degree. Values are divided by their size there.
  int source_degree(const DataTerm& term) const {
    return term.scale == SourceScale::none ? state_ : 0;
  }

  static bool spikes(const AttentionBlock& block) { return block.neurons.gain != no_tensor; }

  // What breaks it, if anything. `mixed` is the degree of values.
  std::string attention(const AttentionBlock& block, int mixed) {
    const WeightingRow& weighting = row_of(block.weighting);
    const auto& data = block.data;
    if (spikes(block)) {
      const std::string reason = "neurons that fire at a threshold, which does not scale";
      found_.layers.emplace_back();
      fault(reason);  // whatever attention does
      return reason;
    }
    const bool alone = !block.positions && !block.convolution;
    const int source = data ? source_degree(*data) : 0;
    const bool unequal = data && data->positions_joined && source != 0;  // P has degree 0
    const int scores = source == 0 ? 0 : row_of(data->scores).degree;
    AttentionDegrees& degrees = found_.layers.emplace_back();
    if (data && source != 0) map(data->query_key, source);
    if (!unequal && (scores == 0 || alone)) degrees.scores = scores;
    if (unequal) return "attention from data and positions, of which one scales";
    if (weighting.adds_values) {
      const std::string reason = sums(block, scores, mixed);
      if (reason.empty()) degrees.weights = 0;
      return reason;
    }
    const bool hidden = weighting.scale_free && !block.convolution &&
                        (!block.positions || weighting.positions_are_factors);
    if (scores == 0 || weighting.unit_keys || hidden) {
      degrees.weights = 0;
      return {};
    }
    if (among(block.weighting, {Weighting::relu, Weighting::sums})) {  // of degree 1 in the scores
      return fmt::format(
          "weights that grow with the scores: attention has degree {0} in its input, and L layers "
          "{0}^L, which overflows far outside the training range",
          scores + 1);
    }
    return "attention from the data: its scores change with the scale of the input";
  }

  // Sums of scores and values: scores of positions are tables, which count among the biases, and
  // those of the data have a degree.
  std::string sums(const AttentionBlock& block, int scores, int mixed) {
    if (block.positions) {
      if (!among(block.positions->kind, {ScoreBias::direct, ScoreBias::distance})) {
        return "values added to scores of positions, which do not scale";
      }
      if (mixed != 0) {
        found_.biases.insert(found_.biases.end(), block.positions->tensors.begin(),
                             block.positions->tensors.end());
      }
    }
    if (!block.data || scores == mixed) return {};
    return "values added to scores of the data that do not scale as they do";
  }

  const Plan& plan_;
  int state_ = 1;  // of x, or of the symbols
  Degrees found_;
};

}  // namespace

std::string Degrees::broken_by() const {
  for (const AttentionDegrees& layer : layers) {
    if (!layer.fault.empty()) return layer.fault;
  }
  return fault;
}

Degrees degrees_of(const Plan& plan) { return DegreeWalk(plan).take(); }

void check_degrees(const Plan& plan) {
  if (!plan.input.stream) return;
  const Degrees found = degrees_of(plan);
  std::string broken = found.broken_by();
  if (broken.empty() && !found.biases.empty()) {
    broken = "a bias of values: " + plan.tensors.all()[found.biases.front()].name;
  }
  if (broken.empty()) return;
  throw Error(ExitCode::configuration, "two streams with " + broken,
              "values that scale with the input, and symbols that do not");
}

}  // namespace posattn
