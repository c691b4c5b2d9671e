#include "posattn/simulation/calibration.h"

#include <algorithm>
#include <cmath>

namespace posattn::simulation {
namespace {

const float* input_of(const Dataset& inputs, int64_t sample) {
  return inputs.inputs.data() + sample * inputs.shape.input_count();
}

// The place where the table of an exponential may start: below, it is less than the error of a
// table of so many pieces up to `high`.
double start_of_exponential(double least, double high, int pieces) {
  const double negligible = high - 2 * std::log(4.0 * pieces);
  constexpr double further = 12;  // below, no calibration input needs a piece
  return std::max(std::min(least, negligible), negligible - further);
}

Interval range_of(Use use, const Arguments& arguments, int pieces, int nodes) {
  constexpr double margin = 1.5;
  Interval range = widened(arguments, margin);
  switch (use) {
    case Use::exponential:  // of what is at most zero
      return {start_of_exponential(range.low, 0, pieces), 0};
    case Use::normaliser:  // a sum of `nodes` numbers up to one, one of which is one
      return {0.9, 1.05 * nodes};
    case Use::weighted_value:
      range.high = arguments.greatest() + std::log(margin);
      return {start_of_exponential(range.low, range.high, pieces), range.high};
    default:
      return range;
  }
}

// Exact functions that keep their arguments, by table.
struct Recorder {
  std::vector<std::vector<double>> seen;

  double square(int table, double z) { return seen[table].push_back(z), z * z; }
  double exponential(int table, double z) { return seen[table].push_back(z), std::exp(z); }
  double normaliser(int table, double z) { return seen[table].push_back(z), std::log(z); }
  double value(int table, double z) { return seen[table].push_back(z), std::log(z); }
  double weighted(int table, double log_weight, double value) {
    return exponential(table, log_weight + value);
  }
};

struct TableFunctions {
  const std::vector<FittedTable>& tables;
  int64_t all = 0, outside = 0;  // arguments

  double at(int table, double z) {
    ++all;
    outside += tables[table].is_outside(z) ? 1 : 0;
    return tables[table](z);
  }
  double square(int table, double z) { return at(table, z); }
  double exponential(int table, double z) { return at(table, z); }
  double normaliser(int table, double z) { return at(table, z); }
  double value(int table, double z) { return at(table, z); }
  double weighted(int table, double log_weight, double value) {
    return at(table, log_weight + value);
  }
};

}  // namespace

Calibration calibrate(const StandardNetwork& network, const Dataset& inputs) {
  Calibration result{std::vector<std::vector<Matrix>>(network.layers.size()),
                     std::vector<Attention>(network.layers.size())};
  for (Attention& mean : result.mean_attention) {
    mean.assign(network.heads(), Matrix(network.nodes, network.nodes));
  }
  for (int64_t s = 0; s < inputs.samples; ++s) {
    Matrix words = first_words(network, input_of(inputs, s));
    for (size_t l = 0; l < network.layers.size(); ++l) {
      Attention attention;
      Matrix next = run_layer(network.layers[l], words, &attention, nullptr);
      result.words[l].push_back(std::move(words));
      words = std::move(next);
      for (int h = 0; h < network.heads(); ++h) {
        add(result.mean_attention[l][h].values, attention[h].values,
            1 / static_cast<double>(inputs.samples));
      }
    }
  }
  return result;
}

std::vector<Arguments> arguments_of(const FoldedLayer& layer, const std::vector<Matrix>& words) {
  Recorder recorder{std::vector<std::vector<double>>(layer.tables.size())};
  for (const Matrix& input : words) {
    run_folded(layer, input, recorder);
  }
  std::vector<Arguments> result;
  for (std::vector<double>& all : recorder.seen) result.emplace_back(std::move(all));
  return result;
}

std::vector<FittedTable> make_tables(const FoldedLayer& layer,
                                     const std::vector<Arguments>& arguments,
                                     const TableSizes& pieces, int nodes) {
  std::vector<FittedTable> tables;
  for (size_t t = 0; t < layer.tables.size(); ++t) {
    const Use use = layer.tables[t];
    const int count = pieces[static_cast<int>(use)];
    tables.emplace_back(function_of(use), range_of(use, arguments[t], count, nodes), count,
                        arguments[t]);
  }
  return tables;
}

int StageUnits::most() const {
  return std::max({scores, maximum, exponentials, logarithms, weighted_values, mlp});
}

StageUnits units_of(const FoldedLayer& layer, const TableSizes& pieces) {
  const auto of = [&](Use use) { return pieces[static_cast<int>(use)]; };
  const int heads = static_cast<int>(layer.heads.size()), channels = layer.channel_count();
  const int carried = 1 + layer.words() + layer.signed_words;  // the constant, and words on
  return {
      .scores = carried + 2 * heads + 2 * layer.product_count() * of(Use::score),
      .maximum = carried + 5 * heads,
      .exponentials = carried + 2 * heads + heads * of(Use::exponential),
      .logarithms = carried + 2 * heads + heads * of(Use::normaliser) + channels * of(Use::value),
      .weighted_values = carried + channels * of(Use::weighted_value),
      .mlp = 1 + layer.hidden()};
}

TableSizes sizes_for(const FoldedLayer& layer, int hidden_units) {
  const StageUnits bare = units_of(layer, {});
  const int heads = static_cast<int>(layer.heads.size()), channels = layer.channel_count();
  const auto share = [&](int used, int tables) {
    return std::clamp((hidden_units - used) / std::max(1, tables), fewest_pieces, most_pieces);
  };
  TableSizes pieces{};
  const auto of = [&](Use use) -> int& { return pieces[static_cast<int>(use)]; };
  of(Use::score) = share(bare.scores, 2 * layer.product_count());
  of(Use::exponential) = share(bare.exponentials, heads);
  of(Use::normaliser) = of(Use::value) = share(bare.logarithms, heads + channels);
  of(Use::weighted_value) = share(bare.weighted_values, channels);
  return pieces;
}

std::vector<double> original_outputs(const StandardNetwork& network, const Dataset& inputs,
                                     const std::vector<Attention>* frozen) {
  std::vector<double> outputs;
  for (int64_t s = 0; s < inputs.samples; ++s) {
    Matrix words = first_words(network, input_of(inputs, s));
    for (size_t l = 0; l < network.layers.size(); ++l) {
      words =
          run_layer(network.layers[l], words, nullptr, frozen == nullptr ? nullptr : &(*frozen)[l]);
    }
    const std::vector<double> decoded = decode(network, words);
    outputs.insert(outputs.end(), decoded.begin(), decoded.end());
  }
  return outputs;
}

CopyOutputs copy_outputs(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                         const std::vector<std::vector<FittedTable>>* tables, const Dataset& inputs,
                         int threads) {
  const int64_t per_sample = int64_t{1} * network.real_nodes * network.decoder.weight.rows;
  CopyOutputs result;
  result.values.resize(inputs.samples * per_sample);
  int64_t all = 0, outside = 0;
#pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : all, outside)
  for (int64_t s = 0; s < inputs.samples; ++s) {
    Matrix words = first_words(network, input_of(inputs, s));
    for (size_t l = 0; l < layers.size(); ++l) {
      const FoldedLayer& layer = layers[l];
      if (tables == nullptr) {
        ExactFunctions exact;
        words = run_folded(layer, words, exact);
        continue;
      }
      TableFunctions functions{(*tables)[l]};
      words = run_folded(layer, words, functions);
      all += functions.all;
      outside += functions.outside;
    }
    std::ranges::copy(decode(network, words), result.values.begin() + s * per_sample);
  }
  if (all > 0) result.outside = static_cast<double>(outside) / static_cast<double>(all);
  return result;
}

}  // namespace posattn::simulation
