#include "posattn/simulation/layer_writer.h"

#include <algorithm>

#include "posattn/model/spec/tensor_names.h"

namespace posattn::simulation {

Form operator+(Form left, const Form& right) {
  std::ranges::transform(left, right, left.begin(), std::plus<>());
  return left;
}

Form operator-(Form left, const Form& right) {
  std::ranges::transform(left, right, left.begin(), std::minus<>());
  return left;
}

Form LayerWriter::own(int word, double factor) const {
  Form form(int64_t{2} * width_);
  form[word] = factor;
  return form;
}

Form LayerWriter::read(int head, int word, double factor) const {
  const std::vector<int>& words = heads_[head].words;
  const auto place = std::ranges::find(words, word) - words.begin();
  Form form(int64_t{2} * width_);
  form[width_ + head * (width_ / 2) + place] = factor;
  return form;
}

void LayerWriter::add_unit(Form form, int word, double factor) {
  forms_.push_back(std::move(form));
  targets_.push_back({word, factor});
}

void LayerWriter::keep(const Form& form, int word, bool never_negative) {
  add_unit(form, word, 1);
  if (!never_negative) add_unit(Form(form.size()) - form, word, -1);
}

void LayerWriter::add_table(const FittedTable& table, const Form& form, int word, double factor) {
  const HingeSum sum = table.hinges();
  constants_[word] += factor * sum.constant;
  for (const Hinge& hinge : sum.hinges) {
    Form at = form;
    for (double& x : at) x *= hinge.direction;
    at[0] -= hinge.direction * hinge.knot;
    add_unit(std::move(at), word, factor * hinge.slope);
  }
}

void LayerWriter::write(const ModelSpec& spec, Parameters<float>& parameters, int layer) const {
  write_heads(spec, parameters, layer);
  const auto first = parameters[names::of_layer(layer, names::weight(names::mlp_map(0)))],
             second = parameters[names::of_layer(layer, names::weight(names::mlp_map(1)))];
  const int64_t in = spec.joined_size(), hidden = spec.mlp_width;
  const auto count = static_cast<int64_t>(forms_.size());
  for (int64_t u = 0; u < count; ++u) {
    std::ranges::transform(forms_[u], &first[u * in],
                           [](double x) { return static_cast<float>(x); });
    second[targets_[u].word * hidden + u] = static_cast<float>(targets_[u].factor);
  }
  // The last unit is the word that is 1, and with it all constants.
  first[count * in] = 1;
  for (int w = 0; w < width_; ++w) {
    second[w * hidden + count] = static_cast<float>(constants_[w] + (w == 0 ? 1 : 0));
  }
}

void LayerWriter::write_heads(const ModelSpec& spec, Parameters<float>& parameters,
                              int layer) const {
  const auto value = parameters[names::of_layer(layer, names::weight(names::value))],
             out = parameters[names::of_layer(layer, names::weight(names::output))],
             routes = parameters[names::of_layer(layer, names::routes)],
             weights = parameters[names::of_layer(layer, names::route_weights)];
  const int nodes = spec.nodes(), places = spec.route_places;
  std::ranges::fill(routes, static_cast<float>(nodes - 1));
  for (int64_t w = 0; w < width_; ++w) out[w * width_ + w] = 1;
  for (int h = 0; h < 2; ++h) {
    for (size_t k = 0; k < heads_[h].words.size(); ++k) {
      const auto row = h * spec.head_size() + static_cast<int64_t>(k);
      value[row * width_ + heads_[h].words[k]] = 1;
    }
    for (int i = 0; i < nodes; ++i) {
      const int64_t at = (int64_t{1} * h * nodes + i) * places;
      if (heads_[h].places == nullptr) {
        weights[at] = 1;
        continue;
      }
      const std::vector<int>& read = (*heads_[h].places)[i];
      for (size_t k = 0; k < read.size(); ++k) {
        routes[at + static_cast<int64_t>(k)] = static_cast<float>(read[k]);
        weights[at + static_cast<int64_t>(k)] = 1 / static_cast<float>(read.size());
      }
    }
  }
}

}  // namespace posattn::simulation
