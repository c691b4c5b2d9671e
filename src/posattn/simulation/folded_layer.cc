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

int FoldedLayer::product_count(int step) const {
  size_t count = 0;
  for (const FoldedHead& head : heads) count += head.at(step).products.size();
  return static_cast<int>(count);
}

int FoldedLayer::product_count() const {
  int most = 0;
  for (size_t step = 0; step < heads.front().scores.size(); ++step) {
    most = std::max(most, product_count(static_cast<int>(step)));
  }
  return most;
}

int FoldedLayer::channel_count() const {
  size_t count = 0;
  for (const FoldedHead& head : heads) count += head.channels.size();
  return static_cast<int>(count);
}

Folding::Folding(const StandardLayer& layer, const std::vector<Matrix>& words, bool is_first,
                 int place_words, const KeyPlan& plan)
    : layer_(layer), inputs_(words), place_words_(place_words), plan_(plan) {
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
    if (is_first) folded.fixed.places = Matrix(plan.nodes, plan.nodes);
    for (int step = 0; step < (head.rotated ? plan.steps() : 1); ++step) {
      add_scores(head, statistics.moments, is_first, step, folded);
    }
    for (int i = 0; i < folded.fixed.places.rows; ++i) {  // the same for the whole row
      double* row = folded.fixed.places.row(i);
      const double least = *std::min_element(row, row + plan.nodes);
      for (int j = 0; j < plan.nodes; ++j) row[j] -= least;
    }
    add_values(head, statistics.moments, folded);
    heads_.push_back(std::move(folded));
  }
}

// weight (u - mean)
AffineForm Folding::centred(std::vector<double> weight) const {
  const double constant = -dot(weight.data(), mean_.data(), weight.size());
  return {std::move(weight), constant};
}

void Folding::add_scores(const StandardHead& head, const Matrix& moments, bool is_first, int step,
                         Head& result) const {
  const Matrix query = product(head.query.weight, layer_.start.weight);
  Matrix key = transposed(product(head.key.weight, layer_.start.weight));
  if (head.rotated) rotate(key, -plan_.distance(0, step));
  Matrix form = transposed(product(key, query));  // s_ij = u_i^T form u_j + ...
  // A query's constant part includes the mean of the words.
  std::vector<double> constant = product(head.query.weight, layer_.start.bias);
  add(constant, head.query.bias);
  add(constant, product(query, mean_));
  FoldedScores& scores = result.fixed.scores.emplace_back();
  scores.linear = centred(product(key, constant));
  if (head.rotated) {  // so has the key's, which differs by step
    Matrix of_key(1, key.columns);
    of_key.values = product(head.key.weight, layer_.start.bias);
    add(of_key.values, head.key.bias);
    rotate(of_key, -plan_.distance(0, step));
    add(of_key.values, product(transposed(key), mean_));
    scores.own = centred(product(transposed(query), of_key.values));
    scores.own.constant += dot(constant.data(), of_key.values.data(), constant.size());
  }
  for (int i = 0; is_first && i < plan_.nodes; ++i) {
    // A place with a place is a constant of the pair, and exact.
    for (int j = 0; j < plan_.nodes; ++j) {
      double& of_pair = form(place_words_ + i, place_words_ + j);
      if (!head.rotated || plan_.key(i, 0, step) == j) result.fixed.places(i, j) = of_pair;
      of_pair = 0;
    }
  }
  const Factors factors = whitened_factors(moments, form, moments);
  Products& products = result.products.emplace_back(Products{{}, factors.values});
  for (int r = 0; r < factors.left.columns; ++r) {
    AffineForm a = centred(column(factors.left, r)), b = centred(column(factors.right, r));
    const Interval of_a = range_of(a, inputs_), of_b = range_of(b, inputs_);
    const double largest = largest_of(of_a) * largest_of(of_b);
    // About the middle of their ranges, and equally wide: a b = (a - m) b + m b.
    const double middle = (of_a.low + of_a.high) / 2;
    AffineForm to_linear = b;
    scale(to_linear, middle);
    a.constant -= middle;
    AffineForm to_own = a;
    scale(to_own, (of_b.low + of_b.high) / 2);
    b.constant -= (of_b.low + of_b.high) / 2;
    const double wide_a = of_a.high - of_a.low, wide_b = of_b.high - of_b.low;
    const bool is_constant = !(wide_a > 0 && wide_b > 0);
    const double balance = is_constant ? 1 : std::sqrt(wide_b / wide_a);
    scale(a, balance);
    scale(b, 1 / balance);
    products.all.push_back({{std::move(a), std::move(b)},
                            std::move(to_linear),
                            std::move(to_own),
                            largest,
                            is_constant});
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
    head.combination = new_tables(Function::softplus, plan_.combinations());
    for (size_t k = 0; k < head.scores.size(); ++k) {
      FoldedScores& scores = head.scores[k];
      const Products& products = all.products[k];
      const auto kept = static_cast<size_t>(rank_for(products.sizes, left_out.scores));
      for (size_t r = 0; r < products.all.size(); ++r) {
        const Product& product = products.all[r];
        if (r >= kept) {
          scores.left_out += product.largest;
          continue;
        }
        const auto add_form = [](AffineForm& to, const AffineForm& form) {
          add(to.weight, form.weight);
          to.constant += form.constant;
        };
        add_form(scores.linear, product.to_linear);
        if (!scores.own.weight.empty()) add_form(scores.own, product.to_own);
        if (product.constant) continue;
        scores.products.push_back(product.term);
        scores.products.back().of_sum = new_tables(Function::square);
        scores.products.back().of_difference = new_tables(Function::square);
      }
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
      added.combination = new_tables(Function::softplus, plan_.combinations());
      added.exponential = new_tables(Function::exponential);
    }
    result.heads.push_back(std::move(head));
  }
  return result;
}

ScoreParts score_parts(const FoldedScores& scores, const Matrix& words) {
  const int nodes = words.rows, products = static_cast<int>(scores.products.size());
  ScoreParts parts{Matrix(nodes, products), Matrix(nodes, products), std::vector<double>(nodes),
                   std::vector<double>(nodes)};
  for (int j = 0; j < nodes; ++j) {
    const double* u = words.row(j);
    parts.linear[j] = scores.linear(u);
    if (!scores.own.weight.empty()) parts.own[j] = scores.own(u);
    for (int r = 0; r < products; ++r) {
      parts.queries(j, r) = scores.products[r].query(u);
      parts.keys(j, r) = scores.products[r].key(u);
    }
  }
  return parts;
}

Matrix run_exactly(const FoldedLayer& layer, const Matrix& words, const KeyPlan& plan) {
  if (layer.rotated()) {
    ExactFunctions exact;
    return run_folded(layer, words, plan, exact);
  }
  const int nodes = words.rows;
  Matrix hidden(nodes, layer.hidden());
  for (int i = 0; i < nodes; ++i) layer.own.apply(words.row(i), hidden.row(i));
  for (const FoldedHead& head : layer.heads) {
    const ScoreParts parts = score_parts(head.scores.front(), words);
    const int channels = static_cast<int>(head.channels.size());
    Matrix values(nodes, channels), to_hidden(channels, layer.hidden());
    for (int c = 0; c < channels; ++c) {
      for (int j = 0; j < nodes; ++j) values(j, c) = head.channels[c].value(words.row(j));
      std::ranges::copy(head.channels[c].to_hidden, to_hidden.row(c));
    }
    Matrix weights = product(parts.queries, transposed(parts.keys));
    for (int j = 0; j < nodes; ++j) {
      for (int i = 0; i < nodes; ++i) {
        weights(i, j) += parts.linear[j] + (head.places.rows > 0 ? head.places(i, j) : 0);
      }
    }
    if (plan.causal) mask_later(weights);
    softmax(weights);
    add(hidden.values, product(product(weights, values), to_hidden).values);
  }
  for (double& u : hidden.values) u = u < 0 ? 0 : u;  // NaN stays
  return hidden;
}

}  // namespace posattn::simulation
