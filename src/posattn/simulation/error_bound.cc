#include "posattn/simulation/error_bound.h"

#include <cmath>

namespace posattn::simulation {
namespace {

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
  // What does not depend on the input.
  struct Fixed {
    std::vector<Matrix> queries, keys;  // of each of the scores, errors [nodes, products]
    std::vector<double> scores;         // by tables and what is left out, of each of the scores
    Matrix values;                      // of hidden units by values of a node, [nodes, hidden]
    Matrix channels;                    // of channels by values of a node, [nodes, channels]
    double sums = 0;                    // of the denominator's logarithm
  };

  double error_of(const AffineForm& form, int node) const {
    return sum_of_absolutes(form.weight.data(), errors_.row(node), form.weight.size());
  }

  Fixed fixed_parts(const FoldedHead& head) const {
    const int nodes = errors_.rows, hidden = layer_.hidden();
    Fixed fixed{{},
                {},
                {},
                Matrix(nodes, hidden),
                Matrix(nodes, static_cast<int>(head.channels.size())),
                of_combinations(head.combination)};
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

  double of_combinations(int first) const {
    double sum = 0;
    for (int k = 0; k < plan_.combinations(); ++k) sum += tables_[first + k].largest_error();
    return sum;
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
    std::vector<double> moved(nodes), taken(nodes);
    for (int i = 0; i < nodes; ++i) {
      double most = 0, least_sum = 0;
      for (int j = 0; j < nodes; ++j) {
        if (!(scores.weights(i, j) > 0)) continue;
        most = std::max(most, scores.errors(i, j));
        least_sum += scores.weights(i, j) * std::exp(-scores.errors(i, j));
      }
      for (int j = 0; j < nodes; ++j) {
        const double p = scores.weights(i, j), s = scores.errors(i, j);
        moved[j] = p > 0 ? p * std::expm1(s) / least_sum : 0;
        taken[j] = p > 0 ? p * std::exp(s) / least_sum : 0;
      }
      // A mean over keys moves with the weights, and the mean of errors is an error.
      const double share = std::tanh(most / 2);
      const auto mean_moves = [&](const Matrix& of, const Matrix& mean, int column) {
        double sum = 0, low = mean(i, column), high = low;
        for (int j = 0; j < nodes; ++j) {
          if (!(scores.weights(i, j) > 0)) continue;
          sum += moved[j] * std::abs(of(j, column) - mean(i, column));
          low = std::min(low, of(j, column));
          high = std::max(high, of(j, column));
        }
        return std::min(sum, share * (high - low));
      };
      const auto mean_error = [&](const Matrix& of, int column) {
        double sum = 0, largest = 0;
        for (int j = 0; j < nodes; ++j) {
          if (!(scores.weights(i, j) > 0)) continue;
          sum += taken[j] * of(j, column);
          largest = std::max(largest, of(j, column));
        }
        return std::min(sum, largest);
      };
      for (int k = 0; k < hidden; ++k) {
        result(i, k) += mean_moves(told, mixed, k) + mean_error(fixed.values, k);
      }
      for (int c = 0; c < channels; ++c) {
        const double mean =
            means(i, c) + mean_moves(values, means, c) + mean_error(fixed.channels, c);
        const double error = of_tables(head.channels[c], mean, fixed.sums);
        for (int k = 0; k < hidden; ++k) result(i, k) += std::abs(to_hidden(c, k)) * error;
      }
    }
  }

  // Of a channel whose mean is at most `mean`, by the tables of values, of sums and of the mean.
  double of_tables(const ValueChannel& channel, double mean, double of_denominator) const {
    const double of_values = tables_[channel.logarithm].largest_error();
    return of_values +
           (mean + of_values) * std::expm1(of_denominator + of_combinations(channel.combination)) +
           tables_[channel.exponential].largest_error();
  }

  struct ScoreErrors {
    Matrix weights, errors;  // of attention, of scores [nodes, nodes]
  };
  ScoreErrors score_errors(const FoldedHead& head, const Fixed& fixed, const Matrix& words) const {
    const int nodes = words.rows, word_count = layer_.words();
    ScoreErrors result{Matrix(nodes, nodes), Matrix(nodes, nodes)};
    std::ranges::fill(result.weights.values, -std::numeric_limits<double>::infinity());
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
          result.weights(i, j) =
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
                   const Calibration& calibration) {
  Matrix errors(network.nodes, layers.front().words());  // inputs are exact
  for (size_t l = 0; l < layers.size(); ++l) {
    const LayerBound layer(layers[l], tables[l], plan, errors);
    Matrix next(network.nodes, layers[l].hidden());
    for (const Matrix& words : calibration.words[l]) {
      const Matrix found = layer.of(words);
      for (size_t at = 0; at < next.values.size(); ++at) {
        next.values[at] = std::max(next.values[at], bound_margin * found.values[at]);
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
