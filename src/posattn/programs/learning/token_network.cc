#include "posattn/programs/learning/token_network.h"

#include <algorithm>
#include <cmath>

#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

template <class T>
class Writer {
 public:
  explicit Writer(const TokenNetwork& network)
      : network_(network), spec_(spec_of(network)), parameters_(spec_) {}

  Parameters<T> run() {
    write_tokens();
    for (size_t l = 0; l < network_.layers.size(); ++l) {
      const TokenLayer& layer = network_.layers[l];
      for (size_t h = 0; h < layer.heads.size(); ++h) {
        write_scores(names_of(l, names::query_key), static_cast<int>(h), layer.heads[h]);
        write_values(static_cast<int>(l), static_cast<int>(h), layer.heads[h]);
      }
      for (size_t u = 0; u < layer.units.size(); ++u) {
        const auto unit = static_cast<int>(u);
        write(names_of(l, names::mlp_map(0)), unit, layer.units[u].form, 1);
        for (const auto& [column, factor] : layer.units[u].to) {
          number(names_of(l, names::mlp_map(1)), column, unit) += static_cast<T>(factor);
        }
      }
    }
    number(std::string(names::decoding), 0, network_.output) = 1;
    return std::move(parameters_);
  }

 private:
  static std::string names_of(size_t layer, std::string_view name) {
    return names::of_layer(static_cast<int>(layer), name);
  }

  // Of a weight [rows, columns].
  T& number(const std::string& map, int row, int column) {
    const std::string name = names::weight(map);
    const int64_t columns = parameters_.layout().at(name).shape[1];
    return parameters_[name][row * columns + column];
  }

  void write(const std::string& map, int row, const TokenForm& form, double factor) {
    for (const auto& [column, share] : form.terms) {
      number(map, row, column) += static_cast<T>(factor * share);
    }
    parameters_[names::bias(map)][row] += static_cast<T>(factor * form.constant);
  }

  // The first columns are the data, and then come positions, one-hot.
  void write_tokens() {
    const std::string map(names::encoding);
    for (int c = 0; c < network_.data_columns; ++c) number(map, c, c) = 1;
    for (const auto& [column, values] : network_.constants) {
      for (int i = 0; i < network_.nodes; ++i) {
        number(map, column, network_.data_columns + i) = static_cast<T>(values[i]);
      }
    }
  }

  // Scores are divided by sqrt(d_k), so queries are multiplied by it.
  void write_scores(const std::string& map, int h, const TokenHead& head) {
    const int key = spec_.key_size();
    for (size_t r = 0; r < head.score.size(); ++r) {
      const int row = 2 * h * key + static_cast<int>(r);
      write(map, row, head.score[r].first, std::sqrt(static_cast<double>(key)));
      write(map, row + key, head.score[r].second, 1);
    }
  }

  void write_values(int l, int h, const TokenHead& head) {
    for (size_t p = 0; p < head.values.size(); ++p) {
      const int place = h * spec_.head_size() + static_cast<int>(p);
      write(names::of_layer(l, names::value), place, head.values[p].first, 1);
      number(names::of_layer(l, names::output), head.values[p].second, place) = 1;
    }
  }

  const TokenNetwork& network_;
  ModelSpec spec_;
  Parameters<T> parameters_;
};

}  // namespace

ModelSpec spec_of(const TokenNetwork& network) {
  size_t heads = 1, values = 1, score = 1, units = 1;
  for (const TokenLayer& layer : network.layers) {
    heads = std::max(heads, layer.heads.size());
    units = std::max(units, layer.units.size());
    for (const TokenHead& head : layer.heads) {
      values = std::max(values, head.values.size());
      score = std::max(score, head.score.size());
    }
  }
  ModelSpec spec;
  apply_preset("relu", spec);
  spec.join = Join::add;
  spec.scratch_nodes = 0;
  spec.real_nodes = network.nodes;
  spec.data_columns = network.data_columns;
  spec.read_nodes = 1;
  spec.heads = static_cast<int>(heads);
  const size_t least = std::max({heads * values, score, static_cast<size_t>(network.columns)});
  spec.width = static_cast<int>((least + heads - 1) / heads * heads);
  spec.depth = static_cast<int>(network.layers.size());
  spec.mlp_width = static_cast<int>(units);
  return resolve(spec);
}

template <class T>
Parameters<T> weights_of(const TokenNetwork& network) {
  return Writer<T>(network).run();
}
template Parameters<float> weights_of<float>(const TokenNetwork&);
template Parameters<double> weights_of<double>(const TokenNetwork&);

}  // namespace posattn
