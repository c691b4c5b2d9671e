#include "posattn/simulation/folded_layer.h"

#include <limits>

namespace posattn::simulation {
namespace {

// The words before a layer over all calibration inputs and nodes.
struct WordStatistics {
  std::vector<double> mean;
  Matrix moments;  // about `mean`
};

// Before the first layer words are the data and a one-hot place; about zero they fold to few terms.
WordStatistics statistics_of(const std::vector<Matrix>& inputs, bool about_zero) {
  const int words = inputs.front().columns;
  WordStatistics result{std::vector<double>(words), Matrix(words, words)};
  double rows = 0;
  for (const Matrix& input : inputs) rows += input.rows;
  if (!about_zero) {
    for (const Matrix& input : inputs) {
      for (int i = 0; i < input.rows; ++i) {
        for (int k = 0; k < words; ++k) result.mean[k] += input(i, k) / rows;
      }
    }
  }
  std::vector<double> centred(words);
  for (const Matrix& input : inputs) {
    for (int i = 0; i < input.rows; ++i) {
      for (int k = 0; k < words; ++k) centred[k] = input(i, k) - result.mean[k];
      for (int a = 0; a < words; ++a) {
        for (int b = 0; b < words; ++b) result.moments(a, b) += centred[a] * centred[b] / rows;
      }
    }
  }
  return result;
}

std::vector<double> column(const Matrix& matrix, int index) {
  std::vector<double> result(matrix.rows);
  for (int r = 0; r < matrix.rows; ++r) result[r] = matrix(r, index);
  return result;
}

Interval range_of(const AffineForm& form, const std::vector<Matrix>& inputs) {
  Interval range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const Matrix& input : inputs) {
    for (int i = 0; i < input.rows; ++i) {
      const double value = form(input.row(i));
      range = {std::min(range.low, value), std::max(range.high, value)};
    }
  }
  return range;
}

void scale(AffineForm& form, double factor) {
  for (double& w : form.weight) w *= factor;
  form.constant *= factor;
}

class Folding {
 public:
  Folding(const StandardLayer& layer, const std::vector<Matrix>& inputs, bool is_first,
          int data_columns, LeftOut left_out)
      : layer_(layer),
        inputs_(inputs),
        is_first_(is_first),
        data_columns_(data_columns),
        left_out_(left_out),
        words_(statistics_of(inputs, is_first)) {}

  FoldedLayer run() {
    const int width = layer_.width();
    of_x_ = some_columns(layer_.mlp.weight, 0, width);
    of_attention_ = some_columns(layer_.mlp.weight, width, width);
    result_.own = {product(of_x_, layer_.start.weight), layer_.mlp.bias};
    add(result_.own.bias, product(of_x_, layer_.start.bias));
    add(result_.own.bias, product(of_attention_, layer_.output_bias));
    result_.signed_words = is_first_ ? data_columns_ : 0;
    for (const StandardHead& head : layer_.heads) {
      FoldedHead folded;
      fold_scores(head, folded);
      folded.exponential = new_table(Use::exponential);
      folded.normaliser = new_table(Use::normaliser);
      fold_values(head, folded);
      result_.heads.push_back(std::move(folded));
    }
    return std::move(result_);
  }

 private:
  int new_table(Use use) {
    result_.tables.push_back(use);
    return static_cast<int>(result_.tables.size()) - 1;
  }

  // weight (u - mean) + constant
  AffineForm centred(std::vector<double> weight, double constant) const {
    constant -= dot(weight.data(), words_.mean.data(), weight.size());
    return {std::move(weight), constant};
  }

  void fold_scores(const StandardHead& head, FoldedHead& folded) {
    const Matrix query = product(head.query.weight, layer_.start.weight),
                 key = product(head.key.weight, layer_.start.weight);
    Matrix form = product(transposed(query), key);  // s_ij = u_i^T form u_j + ...
    // A query's constant part includes the mean of the words.
    std::vector<double> constant = product(head.query.weight, layer_.start.bias);
    add(constant, head.query.bias);
    add(constant, product(query, words_.mean));
    folded.linear = product(transposed(key), constant);
    if (is_first_) {  // a place with a place is a constant of the pair, and exact
      const int places = form.rows - data_columns_;
      folded.places = Matrix(places, places);
      for (int i = 0; i < places; ++i) {
        for (int j = 0; j < places; ++j) {
          std::swap(folded.places(i, j), form(data_columns_ + i, data_columns_ + j));
        }
      }
    }
    const Factors factors = whitened_factors(words_.moments, form, words_.moments);
    const int rank = rank_for(factors.values, left_out_.scores);
    for (int r = 0; r < rank; ++r) {
      AffineForm a = centred(column(factors.left, r), 0), b = centred(column(factors.right, r), 0);
      // About the middle of their ranges, and equally wide: a b = (a - m) b + m b.
      const Interval of_a = range_of(a, inputs_), of_b = range_of(b, inputs_);
      const double middle = (of_a.low + of_a.high) / 2;
      add(folded.linear, b.weight, middle);
      a.constant -= middle;
      b.constant -= (of_b.low + of_b.high) / 2;
      const double wide_a = of_a.high - of_a.low, wide_b = of_b.high - of_b.low;
      if (!(wide_a > 0 && wide_b > 0)) continue;  // one of them is constant: nothing is left
      const double balance = std::sqrt(wide_b / wide_a);
      scale(a, balance);
      scale(b, 1 / balance);
      folded.products.push_back(
          {std::move(a), std::move(b), new_table(Use::score), new_table(Use::score)});
    }
  }

  void fold_values(const StandardHead& head, FoldedHead& folded) {
    constexpr double margin = 1.5,
                     least = 0.1;  // of the range; tables of logarithms start at least
    const Matrix out = product(of_attention_, head.output);
    const Matrix form = product(out, product(head.value.weight, layer_.start.weight));
    std::vector<double> constant = product(head.value.weight, layer_.start.bias);
    add(constant, head.value.bias);
    add(result_.own.bias, product(out, constant));
    add(result_.own.bias, product(form, words_.mean));
    const Factors factors = whitened_factors(identity(form.rows), form, words_.moments);
    const int rank = rank_for(factors.values, left_out_.values);
    for (int r = 0; r < rank; ++r) {
      AffineForm value = centred(column(factors.right, r), 0);
      std::vector<double> to_hidden = column(factors.left, r);
      const Interval range = range_of(value, inputs_);
      const double width = (range.high - range.low) * margin;
      if (!(width > 0)) {  // the same everywhere, so its mean over any attention is too
        add(result_.own.bias, to_hidden, range.low);
        continue;
      }
      const double offset = least * width + (width - (range.high + range.low)) / 2;
      value.constant += offset;
      add(result_.own.bias, to_hidden, -offset);  // weights of attention sum to one
      folded.channels.push_back({std::move(value), std::move(to_hidden), new_table(Use::value),
                                 new_table(Use::weighted_value)});
    }
  }

  const StandardLayer& layer_;
  const std::vector<Matrix>& inputs_;
  bool is_first_;
  int data_columns_;
  LeftOut left_out_;
  WordStatistics words_;
  Matrix of_x_, of_attention_;  // parts of the MLP's first map
  FoldedLayer result_;
};

}  // namespace

std::string_view letter_of(Use use) {
  constexpr std::string_view letters[uses] = {"A", "B", "C", "G", "D"};
  return letters[static_cast<int>(use)];
}

Function function_of(Use use) {
  constexpr Function functions[uses] = {Function::square, Function::exponential,
                                        Function::logarithm, Function::weighted_logarithm,
                                        Function::exponential};
  return functions[static_cast<int>(use)];
}

int FoldedLayer::product_count() const {
  size_t count = 0;
  for (const FoldedHead& head : heads) count += head.products.size();
  return static_cast<int>(count);
}

int FoldedLayer::channel_count() const {
  size_t count = 0;
  for (const FoldedHead& head : heads) count += head.channels.size();
  return static_cast<int>(count);
}

FoldedLayer fold(const StandardLayer& layer, const std::vector<Matrix>& words, bool is_first,
                 int data_columns, LeftOut left_out) {
  return Folding(layer, words, is_first, data_columns, left_out).run();
}

}  // namespace posattn::simulation
