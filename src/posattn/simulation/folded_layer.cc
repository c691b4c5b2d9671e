#include "posattn/simulation/folded_layer.h"

#include <limits>

namespace posattn::simulation {
namespace {

// The words before a layer over all calibration inputs and nodes.
struct WordStatistics {
  std::vector<double> mean;
  Matrix moments;  // about `mean`
};

// Before the first layer words are the data and one-hot tokens and places; about zero they fold to
// few terms.
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

// Terms are compared with what they were on calibration inputs; elsewhere they may be so much more.
constexpr double margin = 1.5;

double largest_of(const Interval& range) {
  return margin * std::max(std::abs(range.low), std::abs(range.high));
}

}  // namespace

std::string_view letter_of(Function function) {
  constexpr std::string_view letters[function_count] = {"A", "G", "S", "D"};
  return letters[static_cast<int>(function)];
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

Folding::Folding(const StandardLayer& layer, const std::vector<Matrix>& words, bool is_first,
                 int place_words, int combinations)
    : layer_(layer), inputs_(words), place_words_(place_words), combinations_(combinations) {
  WordStatistics statistics = statistics_of(words, is_first);
  mean_ = std::move(statistics.mean);
  const int width = layer.width();
  const Matrix of_x = some_columns(layer.mlp.weight, 0, width);
  of_attention_ = some_columns(layer.mlp.weight, width, width);
  own_ = {product(of_x, layer.start.weight), layer.mlp.bias};
  add(own_.bias, product(of_x, layer.start.bias));
  add(own_.bias, product(of_attention_, layer.output_bias));
  for (const StandardHead& head : layer.heads) {
    Head folded;
    add_scores(head, statistics.moments, is_first, folded);
    add_values(head, statistics.moments, folded);
    heads_.push_back(std::move(folded));
  }
}

// weight (u - mean)
AffineForm Folding::centred(std::vector<double> weight) const {
  const double constant = -dot(weight.data(), mean_.data(), weight.size());
  return {std::move(weight), constant};
}

void Folding::add_scores(const StandardHead& head, const Matrix& moments, bool is_first,
                         Head& result) {
  const Matrix query = product(head.query.weight, layer_.start.weight),
               key = product(head.key.weight, layer_.start.weight);
  Matrix form = product(transposed(query), key);  // s_ij = u_i^T form u_j + ...
  // A query's constant part includes the mean of the words.
  std::vector<double> constant = product(head.query.weight, layer_.start.bias);
  add(constant, head.query.bias);
  add(constant, product(query, mean_));
  result.fixed.linear = centred(product(transposed(key), constant));
  if (is_first) {  // a place with a place is a constant of the pair, and exact
    const int places = form.rows - place_words_;
    result.fixed.places = Matrix(places, places);
    for (int i = 0; i < places; ++i) {
      double* row = result.fixed.places.row(i);
      for (int j = 0; j < places; ++j) std::swap(row[j], form(place_words_ + i, place_words_ + j));
      const double least = *std::min_element(row, row + places);
      for (int j = 0; j < places; ++j) row[j] -= least;  // the same for the whole row
    }
  }
  const Factors factors = whitened_factors(moments, form, moments);
  result.product_sizes = factors.values;
  for (int r = 0; r < factors.left.columns; ++r) {
    AffineForm a = centred(column(factors.left, r)), b = centred(column(factors.right, r));
    const Interval of_a = range_of(a, inputs_), of_b = range_of(b, inputs_);
    const double largest = largest_of(of_a) * largest_of(of_b);
    // About the middle of their ranges, and equally wide: a b = (a - m) b + m b.
    const double middle = (of_a.low + of_a.high) / 2;
    AffineForm to_linear = b;
    scale(to_linear, middle);
    a.constant -= middle;
    b.constant -= (of_b.low + of_b.high) / 2;
    const double wide_a = of_a.high - of_a.low, wide_b = of_b.high - of_b.low;
    const bool is_constant = !(wide_a > 0 && wide_b > 0);
    const double balance = is_constant ? 1 : std::sqrt(wide_b / wide_a);
    scale(a, balance);
    scale(b, 1 / balance);
    result.products.push_back(
        {{std::move(a), std::move(b)}, std::move(to_linear), largest, is_constant});
  }
}

void Folding::add_values(const StandardHead& head, const Matrix& moments, Head& result) {
  constexpr double least = 0.01;  // of the range; tables of logarithms start at least
  const Matrix out = product(of_attention_, head.output);
  const Matrix form = product(out, product(head.value.weight, layer_.start.weight));
  std::vector<double> constant = product(head.value.weight, layer_.start.bias);
  add(constant, head.value.bias);
  add(own_.bias, product(out, constant));
  add(own_.bias, product(form, mean_));
  const Factors factors = whitened_factors(identity(form.rows), form, moments);
  result.channel_sizes = factors.values;
  for (int r = 0; r < factors.right.columns; ++r) {
    AffineForm value = centred(column(factors.right, r));
    const Interval range = range_of(value, inputs_);
    const double width = (range.high - range.low) * value_margin;
    const bool is_constant = !(width > 0);  // so its mean over any attention is the same too
    const double offset =
        is_constant ? -range.low : least * width + (width - (range.high + range.low)) / 2;
    value.constant += offset;
    result.channels.push_back(
        {{std::move(value), column(factors.left, r)}, offset, largest_of(range), is_constant});
  }
}

FoldedLayer Folding::without(LeftOut left_out) const {
  FoldedLayer result{.own = own_, .heads = {}, .tables = {}, .left_out = {}};
  result.left_out.resize(own_.bias.size());
  const auto new_tables = [&](Function function, int count = 1) {
    result.tables.insert(result.tables.end(), count, function);
    return static_cast<int>(result.tables.size()) - count;
  };
  for (const Head& all : heads_) {
    FoldedHead head = all.fixed;
    head.combination = new_tables(Function::softplus, combinations_);
    const auto products = static_cast<size_t>(rank_for(all.product_sizes, left_out.scores));
    for (size_t r = 0; r < all.products.size(); ++r) {
      const Product& product = all.products[r];
      if (r >= products) {
        head.left_out += product.largest;
        continue;
      }
      add(head.linear.weight, product.to_linear.weight);
      head.linear.constant += product.to_linear.constant;
      if (product.constant) continue;
      head.products.push_back(product.term);
      head.products.back().of_sum = new_tables(Function::square);
      head.products.back().of_difference = new_tables(Function::square);
    }
    const auto channels = static_cast<size_t>(rank_for(all.channel_sizes, left_out.values));
    for (size_t r = 0; r < all.channels.size(); ++r) {
      const Channel& channel = all.channels[r];
      const std::vector<double>& to_hidden = channel.term.to_hidden;
      if (r >= channels) {
        for (size_t k = 0; k < to_hidden.size(); ++k) {
          result.left_out[k] += std::abs(to_hidden[k]) * channel.largest;
        }
        continue;
      }
      add(result.own.bias, to_hidden, -channel.offset);  // weights of attention sum to one
      if (channel.constant) continue;
      head.channels.push_back(channel.term);
      ValueChannel& added = head.channels.back();
      added.logarithm = new_tables(Function::logarithm);
      added.combination = new_tables(Function::softplus, combinations_);
      added.exponential = new_tables(Function::exponential);
    }
    result.heads.push_back(std::move(head));
  }
  return result;
}

Matrix run_exactly(const FoldedLayer& layer, const Matrix& words, bool causal) {
  const int nodes = words.rows;
  Matrix hidden(nodes, layer.hidden());
  for (int i = 0; i < nodes; ++i) layer.own.apply(words.row(i), hidden.row(i));
  for (const FoldedHead& head : layer.heads) {
    const int products = static_cast<int>(head.products.size()),
              channels = static_cast<int>(head.channels.size());
    Matrix queries(nodes, products), keys(products, nodes), values(nodes, channels),
        to_hidden(channels, layer.hidden());
    for (int j = 0; j < nodes; ++j) {
      const double* u = words.row(j);
      for (int r = 0; r < products; ++r) {
        queries(j, r) = head.products[r].query(u);
        keys(r, j) = head.products[r].key(u);
      }
      for (int c = 0; c < channels; ++c) values(j, c) = head.channels[c].value(u);
    }
    for (int c = 0; c < channels; ++c) {
      std::ranges::copy(head.channels[c].to_hidden, to_hidden.row(c));
    }
    Matrix weights = product(queries, keys);
    for (int j = 0; j < nodes; ++j) {
      const double linear = head.linear(words.row(j));
      for (int i = 0; i < nodes; ++i) {
        weights(i, j) += linear + (head.places.rows > 0 ? head.places(i, j) : 0);
      }
    }
    if (causal) mask_later(weights);
    softmax(weights);
    add(hidden.values, product(product(weights, values), to_hidden).values);
  }
  for (double& u : hidden.values) u = u < 0 ? 0 : u;  // NaN stays
  return hidden;
}

}  // namespace posattn::simulation
