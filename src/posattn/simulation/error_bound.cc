#include "posattn/simulation/error_bound.h"

#include <cmath>

namespace posattn::simulation {
namespace {

double sum_of_absolutes(const double* weight, const std::vector<double>& errors) {
  double sum = 0;
  for (size_t k = 0; k < errors.size(); ++k) sum += std::abs(weight[k]) * errors[k];
  return sum;
}

double greatest(const Interval& range) {
  return std::max(std::abs(range.low), std::abs(range.high));
}

class LayerBound {
 public:
  LayerBound(const FoldedLayer& layer, const std::vector<FittedTable>& tables, const KeyPlan& plan,
             const std::vector<double>& errors)
      : layer_(layer), tables_(tables), plan_(plan), errors_(errors) {}

  // Of the words after the layer.
  std::vector<double> run() const {
    std::vector<double> result = layer_.left_out;
    for (int k = 0; k < layer_.hidden(); ++k) {
      result[k] += sum_of_absolutes(layer_.own.weight.row(k), errors_);
    }
    for (const FoldedHead& head : layer_.heads) {
      const double moved = std::tanh(of_scores(head) / 2);
      Matrix values(layer_.hidden(), static_cast<int>(errors_.size()));  // into the hidden units
      for (const ValueChannel& channel : head.channels) {
        const double error = of_mean(head, channel, moved);
        for (int k = 0; k < layer_.hidden(); ++k) {
          result[k] += std::abs(channel.to_hidden[k]) * error;
          for (int w = 0; w < values.columns; ++w) {
            values(k, w) += channel.to_hidden[k] * channel.value.weight[w];
          }
        }
      }
      for (int k = 0; k < layer_.hidden(); ++k) {
        result[k] += sum_of_absolutes(values.row(k), errors_);
      }
    }
    return result;
  }

 private:
  double of(const AffineForm& form) const { return sum_of_absolutes(form.weight.data(), errors_); }

  double of_scores(const FoldedHead& head) const {
    double most = 0;
    for (const FoldedScores& scores : head.scores) most = std::max(most, of_scores(scores));
    return most;
  }
  double of_scores(const FoldedScores& scores) const {
    double sum = scores.left_out + of(scores.linear);
    if (!scores.own.weight.empty()) sum += of(scores.own);
    for (const ScoreProduct& term : scores.products) {
      const FittedTable &plus = tables_[term.of_sum], &minus = tables_[term.of_difference];
      const double most = (greatest(plus.range()) + greatest(minus.range())) / 2;
      const double query = of(term.query), key = of(term.key);
      sum +=
          (plus.largest_error() + minus.largest_error()) / 4 + most * (query + key) + query * key;
    }
    return sum;
  }

  double of_combinations(int first) const {
    double sum = 0;
    for (int k = 0; k < plan_.combinations(); ++k) sum += tables_[first + k].largest_error();
    return sum;
  }

  // Of a channel's mean by what the tables and the weights do; what its values were off comes
  // later.
  double of_mean(const FoldedHead& head, const ValueChannel& channel, double moved) const {
    const FittedTable& logarithm = tables_[channel.logarithm];
    const Interval values = logarithm.range();
    const double of_values = logarithm.largest_error();
    const double of_sums = of_combinations(head.combination) + of_combinations(channel.combination);
    return moved * (values.high - values.low) + of_values +
           (values.high + of_values) * std::expm1(of_sums) +
           tables_[channel.exponential].largest_error();
  }

  const FoldedLayer& layer_;
  const std::vector<FittedTable>& tables_;
  const KeyPlan& plan_;
  const std::vector<double>& errors_;
};

}  // namespace

double error_bound(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                   const std::vector<std::vector<FittedTable>>& tables, const KeyPlan& plan) {
  std::vector<double> errors(layers.front().own.weight.columns);  // inputs are exact
  for (size_t l = 0; l < layers.size(); ++l) {
    errors = LayerBound(layers[l], tables[l], plan, errors).run();
  }
  double largest = 0;
  for (int c = 0; c < network.decoder.weight.rows; ++c) {
    largest = std::max(largest, sum_of_absolutes(network.decoder.weight.row(c), errors));
  }
  return largest;
}

}  // namespace posattn::simulation
