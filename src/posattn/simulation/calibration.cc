#include "posattn/simulation/calibration.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace posattn::simulation {
namespace {

// The arguments that the table must know. A softplus is next to zero or straight farther out.
Interval range_of(Function function, const Arguments& arguments, int pieces) {
  const double margin = function == Function::logarithm ? value_margin : 1.5;
  const Interval range = widened(arguments, margin);
  if (function != Function::softplus) return range;
  const double far = 2 * std::log(2.0 * pieces);  // e^-far is less than the table's error
  return {-far, std::clamp(range.high, -far / 2, far)};
}

// Exact functions that keep their arguments, by table.
struct Recorder {
  struct Combination {
    int table, chain;
    double argument, sum;
  };
  std::vector<ArgumentSample> seen;
  std::vector<Combination> combinations = {};

  double take(Function function, int table, double z) {
    seen[table].add(z);
    return exactly(function, z);
  }
  double square(int table, double z) { return take(Function::square, table, z); }
  double logarithm(int table, double z) { return take(Function::logarithm, table, z); }
  double exponential(int table, double z) { return take(Function::exponential, table, z); }
  double combined(int table, int chain, double sum, double other) {
    const double result = sum + exactly(Function::softplus, other - sum);
    combinations.push_back({table, chain, other - sum, result});
    return result;
  }
  // An error of a sum counts as much as the sum does in the last one.
  void finish(const LogSums& last) {
    for (const Combination& each : combinations) {
      const double all = each.chain == 0 ? last.denominator : last.numerators[each.chain - 1];
      seen[each.table].add(each.argument, std::exp(2 * (each.sum - all)));
    }
    combinations.clear();
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
  double logarithm(int table, double z) { return at(table, z); }
  double exponential(int table, double z) { return at(table, z); }
  double combined(int table, int, double sum, double other) { return sum + at(table, other - sum); }
  void finish(const LogSums&) const {}
};

// Outputs, sample by sample, where `run(l, words)` gives the words after layer l.
template <class Run>
std::vector<double> outputs_by(const StandardNetwork& network, const Dataset& inputs, int threads,
                               const Run& run) {
  const int64_t per_sample = int64_t{1} * network.nodes_read * network.decoder.weight.rows;
  std::vector<double> outputs(inputs.samples * per_sample);
#pragma omp parallel for schedule(static) num_threads(threads)
  for (int64_t s = 0; s < inputs.samples; ++s) {
    Matrix words = first_words(network, inputs, s);
    for (size_t l = 0; l < network.layers.size(); ++l) words = run(l, words);
    std::ranges::copy(decode(network, words), outputs.begin() + s * per_sample);
  }
  return outputs;
}

}  // namespace

Calibration calibrate(const StandardNetwork& network, const Dataset& inputs) {
  Calibration result{std::vector<std::vector<Matrix>>(network.layers.size()),
                     std::vector<Attention>(network.layers.size())};
  for (Attention& mean : result.mean_attention) {
    mean.assign(network.heads(), Matrix(network.nodes, network.nodes));
  }
  for (int64_t s = 0; s < inputs.samples; ++s) {
    Matrix words = first_words(network, inputs, s);
    for (size_t l = 0; l < network.layers.size(); ++l) {
      Attention attention;
      Matrix next = run_layer(network.layers[l], words, network.causal, &attention, nullptr);
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

std::vector<Arguments> arguments_of(const FoldedLayer& layer, const std::vector<Matrix>& words,
                                    const KeyPlan& plan) {
  Recorder recorder{std::vector<ArgumentSample>(layer.tables.size())};
  for (const Matrix& input : words) run_folded(layer, input, plan, recorder);
  std::vector<Arguments> result;
  for (ArgumentSample& all : recorder.seen) result.push_back(std::move(all).arguments());
  return result;
}

std::vector<FittedTable> make_tables(const FoldedLayer& layer,
                                     const std::vector<Arguments>& arguments,
                                     const TableSizes& pieces) {
  std::vector<FittedTable> tables;
  for (size_t t = 0; t < layer.tables.size(); ++t) {
    const Function function = layer.tables[t];
    const int count = pieces[static_cast<int>(function)];
    tables.emplace_back(function, range_of(function, arguments[t], count), count, arguments[t]);
  }
  // A mean lies between the least and the greatest of what it is taken over.
  for (const FoldedHead& head : layer.heads) {
    for (const ValueChannel& channel : head.channels) {
      const Interval values = tables[channel.logarithm].range();
      tables[channel.exponential] = FittedTable(
          Function::exponential, {std::log(values.low), std::log(values.high)},
          pieces[static_cast<int>(Function::exponential)], arguments[channel.exponential]);
    }
  }
  return tables;
}

int LayerUnits::most() const {
  return std::max({spread, first, step, combination, exponentials, mlp});
}

LayerUnits units_of(const FoldedLayer& layer, const TableSizes& pieces, const KeyPlan& plan) {
  const auto of = [&](Function function) { return pieces[static_cast<int>(function)]; };
  const int heads = static_cast<int>(layer.heads.size()), channels = layer.channel_count(),
            sums = heads + channels, steps = plan.steps();
  // The constant, and what the MLP reads at last. A word that has a sign takes two units.
  int absences = plan.rounds();
  for (int step = 0; step < steps; ++step) absences += plan.misses_keys(step) ? 1 : 0;
  const int carried = 1 + absences + 2 * layer.hidden(),
            node = layer.rotated() ? 2 * layer.words() : 4 * layer.product_count() + 2 * heads;
  const int places = layer.heads.front().places.rows > 0 ? heads : 0;  // for each later step
  const auto scores = [&](int step) {
    return 2 * heads + 2 * layer.product_count(step) * of(Function::square);
  };
  LayerUnits units{.first = carried + scores(0) + channels * of(Function::logarithm) +
                            (steps > 1 ? node : 0) + places * (steps - 1),
                   .step = 0,
                   .combination = carried + sums * (2 + of(Function::softplus)),
                   .exponentials = carried + channels * of(Function::exponential),
                   .mlp = 1 + absences + layer.hidden()};
  for (int step = 1; step < steps; ++step) {
    const int kept = step + 1 < steps ? node + 2 * channels : 0;
    const int pieces_of_sum = step > 1 ? of(Function::softplus) : 0;
    units.step = std::max(units.step, carried + scores(step) + kept + places * (steps - 1 - step) +
                                          2 * channels + sums * (2 + pieces_of_sum));
  }
  if (plan.copies > 1 && places > 0) {
    units.spread = carried + node + 2 * channels + places * steps;
  }
  return units;
}

TableSizes sizes_for(const FoldedLayer& layer, int hidden_units, const KeyPlan& plan) {
  const LayerUnits bare = units_of(layer, {}, plan);
  const int channels = layer.channel_count(), squares = 2 * layer.product_count(),
            sums = static_cast<int>(layer.heads.size()) + channels;
  const auto share = [&](int used, int tables) {
    return std::clamp((hidden_units - used) / std::max(1, tables), fewest_pieces, most_pieces);
  };
  TableSizes pieces{};
  const auto of = [&](Function function) -> int& { return pieces[static_cast<int>(function)]; };
  // A step has tables of squares and of sums at once.
  of(Function::square) = std::min(share(bare.first, squares + channels),
                                  share(bare.step, squares + (plan.steps() > 2 ? sums : 0)));
  of(Function::softplus) = plan.steps() > 2 ? of(Function::square) : share(bare.combination, sums);
  of(Function::logarithm) = share(bare.first + squares * of(Function::square), channels);
  of(Function::exponential) = share(bare.exponentials, channels);
  return pieces;
}

std::vector<double> original_outputs(const StandardNetwork& network, const Dataset& inputs,
                                     const std::vector<Attention>* frozen) {
  return outputs_by(network, inputs, 1, [&](size_t l, const Matrix& words) {
    return run_layer(network.layers[l], words, network.causal, nullptr,
                     frozen == nullptr ? nullptr : &(*frozen)[l]);
  });
}

std::vector<double> folded_outputs(const StandardNetwork& network,
                                   const std::vector<FoldedLayer>& layers, const Dataset& inputs,
                                   int threads) {
  const KeyPlan plan{network.nodes, 1, network.causal, network.rotated};
  return outputs_by(network, inputs, threads, [&](size_t l, const Matrix& words) {
    return run_exactly(layers[l], words, plan);
  });
}

CopyOutputs copy_outputs(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                         const std::vector<std::vector<FittedTable>>& tables, const KeyPlan& plan,
                         const Dataset& inputs, int threads) {
  std::atomic<int64_t> all = 0, outside = 0;
  CopyOutputs result;
  result.values = outputs_by(network, inputs, threads, [&](size_t l, const Matrix& words) {
    TableFunctions functions{tables[l]};
    Matrix next = run_folded(layers[l], words, plan, functions);
    all += functions.all;
    outside += functions.outside;
    return next;
  });
  if (all > 0) result.outside = static_cast<double>(outside) / static_cast<double>(all);
  return result;
}

}  // namespace posattn::simulation
