#include "posattn/simulation/error_bound.h"

#include <cmath>

namespace posattn::simulation {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double sum_of_absolutes(const double* weight, const double* errors, size_t size) {
  double sum = 0;
  for (size_t k = 0; k < size; ++k) sum += std::abs(weight[k]) * errors[k];
  return sum;
}

// One layer. `errors` [nodes, words] are at most those of the words before it.
class LayerBound {
 public:
  LayerBound(const FoldedLayer& layer, const std::vector<FittedTable>& tables, const KeyPlan& plan,
             const Matrix& errors)
      : layer_(layer), tables_(tables), plan_(plan), errors_(errors) {
    for (const FoldedHead& head : layer.heads) heads_.push_back(fixed_parts(head));
  }

  // Of the words after the layer, where those before it are `words` in the original.
  Matrix of(const Matrix& words) const {
    const int nodes = words.rows, hidden = layer_.hidden();
    Matrix sums(nodes, hidden), result(nodes, hidden);  // before the ReLU, and errors
    for (int i = 0; i < nodes; ++i) {
      layer_.own.apply(words.row(i), sums.row(i));
      for (int k = 0; k < hidden; ++k) {
        result(i, k) = layer_.left_out[k] +
                       sum_of_absolutes(layer_.own.weight.row(k), errors_.row(i), layer_.words());
      }
    }
    for (size_t h = 0; h < layer_.heads.size(); ++h) add_head(h, words, sums, result);
    for (size_t at = 0; at < sums.values.size(); ++at) {
      double& error = result.values[at];  // none where both are off
      error = std::min(error, std::max(0.0, sums.values[at] + error));
    }
    return result;
  }

 private:
  struct ScoreErrors {
    Matrix values, weights, errors;  // [nodes, nodes]; weights are those of attention
    bool masked(int i, int j) const { return values(i, j) == -infinity; }
  };
  // What does not depend on the input.
  struct Fixed {
    std::vector<Matrix> queries, keys;  // of each of the scores, errors [nodes, products]
    std::vector<double> scores;         // by tables and what is left out, of each of the scores
    Matrix values;                      // of hidden units by values of a node, [nodes, hidden]
    Matrix channels;                    // of channels by values of a node, [nodes, channels]
  };

  double error_of(const AffineForm& form, int node) const {
    return sum_of_absolutes(form.weight.data(), errors_.row(node), form.weight.size());
  }

  Fixed fixed_parts(const FoldedHead& head) const {
    const int nodes = errors_.rows, hidden = layer_.hidden();
    Fixed fixed{
        {}, {}, {}, Matrix(nodes, hidden), Matrix(nodes, static_cast<int>(head.channels.size()))};
    for (const FoldedScores& scores : head.scores) {
      const auto products = static_cast<int>(scores.products.size());
      Matrix &queries = fixed.queries.emplace_back(nodes, products),
             &keys = fixed.keys.emplace_back(nodes, products);
      double& all = fixed.scores.emplace_back(scores.left_out);
      for (int r = 0; r < products; ++r) {
        const ScoreProduct& term = scores.products[r];
        all +=
            (tables_[term.of_sum].largest_error() + tables_[term.of_difference].largest_error()) /
            4;
        for (int i = 0; i < nodes; ++i) {
          queries(i, r) = error_of(term.query, i);
          keys(i, r) = error_of(term.key, i);
        }
      }
    }
    Matrix values(hidden, layer_.words());
    for (size_t c = 0; c < head.channels.size(); ++c) {
      const ValueChannel& channel = head.channels[c];
      for (int k = 0; k < hidden; ++k) {
        for (int w = 0; w < values.columns; ++w) {
          values(k, w) += channel.to_hidden[k] * channel.value.weight[w];
        }
      }
      for (int j = 0; j < nodes; ++j)
        fixed.channels(j, static_cast<int>(c)) = error_of(channel.value, j);
    }
    for (int j = 0; j < nodes; ++j) {
      for (int k = 0; k < hidden; ++k) {
        fixed.values(j, k) = sum_of_absolutes(values.row(k), errors_.row(j), layer_.words());
      }
    }
    return fixed;
  }

  // Logarithms of node i's sums, denominator first; by how much they differ because their terms do,
  // and because of their softplus tables.
  struct Logarithms {
    bool any = false;
    std::vector<double> values, moved, wrong;
  };
  std::vector<double> sum_errors(const FoldedHead& head, const ScoreErrors& scores,
                                 const Matrix& values, const Matrix& value_errors, int i) const {
    const auto table_of = [&](size_t chain) {
      return chain == 0 ? head.combination : head.channels[chain - 1].combination;
    };
    const auto combine = [&](Logarithms& sum, const Logarithms& other, int index) {
      if (!other.any) return;
      if (!sum.any) {
        sum = other;
        return;
      }
      for (size_t c = 0; c < sum.values.size(); ++c) {
        const double z = other.values[c] - sum.values[c],
                     off = sum.moved[c] + sum.wrong[c] + other.moved[c] + other.wrong[c];
        sum.values[c] += exactly(Function::softplus, z);
        sum.moved[c] = std::max(sum.moved[c], other.moved[c]);
        // What was wrong counts by its share of the sum, e^sum / (e^sum + e^other) or the rest.
        const double mixed = std::log1p(std::expm1(sum.wrong[c]) / (1 + std::exp(z - off)) +
                                        std::expm1(other.wrong[c]) / (1 + std::exp(-z - off)));
        sum.wrong[c] = std::min(mixed, std::max(sum.wrong[c], other.wrong[c])) +
                       tables_[table_of(c) + index].largest_error({z - off, z + off});
      }
    };
    std::vector<Logarithms> sums(plan_.copies);
    for (int copy = 0; copy < plan_.copies; ++copy) {
      for (int step = 0; step < plan_.steps(); ++step) {
        const int j = plan_.key(i, copy, step);
        if (j < 0) continue;
        Logarithms key{true, {scores.values(i, j)}, {scores.errors(i, j)}, {}};
        for (int c = 0; c < values.columns; ++c) {
          const double value = values(j, c), error = value_errors(j, c);
          key.values.push_back(key.values[0] + std::log(value));
          const double lower = error < value ? -std::log1p(-error / value) : infinity;
          key.moved.push_back(key.moved[0] + lower);
        }
        key.wrong.resize(key.values.size());
        combine(sums[copy], key, step - 1);
      }
    }
    for (int round = 0; round < plan_.rounds(); ++round) {
      for (int copy = 0; copy < plan_.copies; ++copy) {
        const int partner = plan_.partner(copy, round);
        if (partner >= 0) combine(sums[copy], sums[partner], plan_.steps() - 1 + round);
      }
    }
    return sums[0].wrong;
  }

  void add_head(size_t h, const Matrix& words, Matrix& sums, Matrix& result) const {
    const FoldedHead& head = layer_.heads[h];
    const Fixed& fixed = heads_[h];
    const int nodes = words.rows, hidden = layer_.hidden(),
              channels = static_cast<int>(head.channels.size());
    const ScoreErrors scores = score_errors(head, fixed, words);
    Matrix values(nodes, channels), to_hidden(channels, hidden);
    for (int c = 0; c < channels; ++c) {
      for (int j = 0; j < nodes; ++j) values(j, c) = head.channels[c].value(words.row(j));
      std::ranges::copy(head.channels[c].to_hidden, to_hidden.row(c));
    }
    const Matrix means = product(scores.weights, values), told = product(values, to_hidden),
                 mixed = product(means, to_hidden);
    add(sums.values, mixed.values);
    Matrix logarithm_errors = fixed.channels, value_errors = fixed.channels;
    for (int c = 0; c < channels; ++c) {
      for (int j = 0; j < nodes; ++j) {
        const double value = values(j, c), error = fixed.channels(j, c);
        logarithm_errors(j, c) =
            tables_[head.channels[c].logarithm].largest_error({value - error, value + error});
        value_errors(j, c) += logarithm_errors(j, c);
      }
    }
    std::vector<double> moved(nodes), taken(nodes);
    for (int i = 0; i < nodes; ++i) {
      double most = 0, least_sum = 0;
      for (int j = 0; j < nodes; ++j) {
        if (scores.masked(i, j)) continue;
        most = std::max(most, scores.errors(i, j));
        least_sum += scores.weights(i, j) * std::exp(-scores.errors(i, j));
      }
      for (int j = 0; j < nodes; ++j) {
        const double p = scores.weights(i, j), s = scores.errors(i, j);
        moved[j] = p * std::expm1(s) / least_sum;
        taken[j] = p * std::exp(s) / least_sum;
      }
      // A mean over keys moves with the weights, and the mean of errors is an error.
      const double share = std::tanh(most / 2);
      const auto mean_moves = [&](const Matrix& of, const Matrix& mean, int column) {
        double sum = 0, low = mean(i, column), high = low;
        for (int j = 0; j < nodes; ++j) {
          if (scores.masked(i, j)) continue;
          sum += moved[j] * std::abs(of(j, column) - mean(i, column));
          low = std::min(low, of(j, column));
          high = std::max(high, of(j, column));
        }
        return std::min(share * (high - low), sum);
      };
      const auto mean_error = [&](const Matrix& of, int column) {
        double sum = 0, largest = 0;
        for (int j = 0; j < nodes; ++j) {
          if (scores.masked(i, j)) continue;
          sum += taken[j] * of(j, column);
          largest = std::max(largest, of(j, column));
        }
        return std::min(largest, sum);
      };
      for (int k = 0; k < hidden; ++k) {
        result(i, k) += mean_moves(told, mixed, k) + mean_error(fixed.values, k);
      }
      const std::vector<double> of_sums = sum_errors(head, scores, values, value_errors, i);
      for (int c = 0; c < channels; ++c) {
        const double moves = mean_moves(values, means, c) + mean_error(value_errors, c),
                     sum = (means(i, c) + moves) * std::expm1(of_sums[0] + of_sums[c + 1]);
        const Interval near{std::log(std::max(means(i, c) - moves - sum, 0.0)),
                            std::log(means(i, c) + moves + sum)};
        const double error = sum + mean_error(logarithm_errors, c) +
                             tables_[head.channels[c].exponential].largest_error(near);
        for (int k = 0; k < hidden; ++k) result(i, k) += std::abs(to_hidden(c, k)) * error;
      }
    }
  }

  ScoreErrors score_errors(const FoldedHead& head, const Fixed& fixed, const Matrix& words) const {
    const int nodes = words.rows, word_count = layer_.words();
    ScoreErrors result{Matrix(nodes, nodes), {}, Matrix(nodes, nodes)};
    std::ranges::fill(result.values.values, -infinity);
    for (int step = 0; step < plan_.steps(); ++step) {
      const bool same = head.scores.size() == 1;
      if (same && step > 0) break;
      const FoldedScores& scores = head.at(step);
      const ScoreParts parts = score_parts(scores, words);
      // How a score moves with the words of the query's node, by key, and with those of the key's.
      Matrix by_query = product(parts.keys, forms(scores.products, &ScoreProduct::query)),
             by_key = product(parts.queries, forms(scores.products, &ScoreProduct::key));
      for (int i = 0; i < nodes; ++i) {
        for (int w = 0; w < word_count; ++w) {
          by_key(i, w) += scores.linear.weight[w];
          if (!scores.own.weight.empty()) by_query(i, w) += scores.own.weight[w];
        }
      }
      for (int i = 0; i < nodes; ++i) {
        for (int j = 0; j < nodes; ++j) {
          if (same ? plan_.causal && j > i : plan_.key(i, 0, step) != j) continue;
          result.values(i, j) =
              parts.linear[j] + parts.own[i] + (head.places.rows > 0 ? head.places(i, j) : 0) +
              dot(parts.queries.row(i), parts.keys.row(j), scores.products.size());
          result.errors(i, j) = fixed.scores[same ? 0 : step] +
                                sum_of_absolutes(by_query.row(j), errors_.row(i), word_count) +
                                sum_of_absolutes(by_key.row(i), errors_.row(j), word_count) +
                                dot(fixed.queries[same ? 0 : step].row(i),
                                    fixed.keys[same ? 0 : step].row(j), scores.products.size());
        }
      }
    }
    result.weights = result.values;
    softmax(result.weights);
    return result;
  }

  Matrix forms(const std::vector<ScoreProduct>& products, AffineForm ScoreProduct::*which) const {
    Matrix result(static_cast<int>(products.size()), layer_.words());
    for (size_t r = 0; r < products.size(); ++r) {
      std::ranges::copy((products[r].*which).weight, result.row(static_cast<int>(r)));
    }
    return result;
  }

  const FoldedLayer& layer_;
  const std::vector<FittedTable>& tables_;
  const KeyPlan& plan_;
  const Matrix& errors_;
  std::vector<Fixed> heads_;
};

}  // namespace

double error_bound(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                   const std::vector<std::vector<FittedTable>>& tables, const KeyPlan& plan,
                   const Calibration& inputs, int threads, double margin) {
  Matrix errors(network.nodes, layers.front().words());  // inputs are exact
  for (size_t l = 0; l < layers.size(); ++l) {
    const LayerBound layer(layers[l], tables[l], plan, errors);
    std::vector<Matrix> found(inputs.words[l].size());
#pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t s = 0; s < found.size(); ++s) found[s] = layer.of(inputs.words[l][s]);
    Matrix next(network.nodes, layers[l].hidden());
    for (const Matrix& each : found) {
      for (size_t at = 0; at < next.values.size(); ++at) {
        next.values[at] = std::max(next.values[at], margin * each.values[at]);
      }
    }
    errors = std::move(next);
  }
  double largest = 0;
  for (int i = network.first_read; i < network.first_read + network.nodes_read; ++i) {
    for (int c = 0; c < network.decoder.weight.rows; ++c) {
      largest = std::max(largest, sum_of_absolutes(network.decoder.weight.row(c), errors.row(i),
                                                   static_cast<size_t>(errors.columns)));
    }
  }
  return largest;
}

}  // namespace posattn::simulation
