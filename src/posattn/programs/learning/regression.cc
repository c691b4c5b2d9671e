// Gradient descent and its relatives, step by step. With t_j = 1 for examples that count and 0 for
// others, and over N of them,
//   w <- w - eta (1/N sum_j t_j (<w, x_j> - y_j) x_j + lambda w)
// is one layer. s - y = relu(s - y) - relu(y - s), so two heads hold the sum, and a third one
// lambda:
//   score_ij = +-(<w_i, x_j> - y_j) - R (1 - t_j),   value_j = -+ eta (nodes / N) x_j, to w
//   score_ij = 1,                                      value_j = -eta lambda w_j, to w
// All nodes hold the same w, so the mean of w_j over all nodes is w. R shuts out what does not
// count; for all others its factor is exactly zero, so R may be huge.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "posattn/programs/learning/learning.h"

namespace posattn {
namespace {

using Vector = std::vector<double>;

constexpr double shut = 0x1p96;

// Columns of a token: x, y and then what the algorithm needs.
class Tokens {
 public:
  explicit Tokens(const LearningProgram& program) : d_(program.whole("d")) {
    network_.nodes = program.nodes();
    network_.data_columns = d_ + 1;
    network_.columns = d_ + 1;
    network_.output = y();
    Vector is_query(program.nodes());
    is_query[0] = 1;
    query_ = constant(std::move(is_query));
  }

  int d() const { return d_; }
  int x(int k) const { return k; }
  int y() const { return d_; }
  int query() const { return query_; }  // 1 there, 0 elsewhere
  int add(int count = 1) {
    network_.columns += count;
    return network_.columns - count;
  }
  int constant(Vector by_node) {
    const int column = add();
    network_.constants.emplace_back(column, std::move(by_node));
    return column;
  }
  TokenLayer& layer() { return network_.layers.emplace_back(); }
  TokenNetwork take() { return std::move(network_); }

  // sign <w of one node, x of the other>
  TokenHead product(int w, double sign, bool keys_have_w) const {
    TokenHead head;
    for (int k = 0; k < d_; ++k) {
      const TokenForm of_w{{{w + k, sign}}}, of_x{{{x(k), 1}}};
      keys_have_w ? head.score.emplace_back(of_x, of_w) : head.score.emplace_back(of_w, of_x);
    }
    return head;
  }

  // A step of gradient descent on w over `count` examples; nodes where one of the columns `out` is
  // 1 do not count.
  void descend(TokenLayer& layer, int w, double rate, double ridge, int count,
               const std::vector<int>& out) const {
    for (const double sign : {1.0, -1.0}) {
      TokenHead head = product(w, sign, false);
      head.score.push_back({TokenForm{{}, -sign}, TokenForm{{{y(), 1}}}});
      TokenForm rest;
      for (const int column : out) rest.terms.emplace_back(column, -1);
      head.score.push_back({TokenForm{{}, shut}, rest});
      const double step = sign * rate * network_.nodes / count;
      for (int k = 0; k < d_; ++k) head.values.push_back({TokenForm{{{x(k), -step}}}, w + k});
      layer.heads.push_back(std::move(head));
    }
    if (ridge == 0) return;
    TokenHead decay;
    decay.score.push_back({TokenForm{{}, 1}, TokenForm{{}, 1}});
    for (int k = 0; k < d_; ++k)
      decay.values.push_back({TokenForm{{{w + k, -rate * ridge}}}, w + k});
    layer.heads.push_back(std::move(decay));
  }

  // Adds <w, x> of the node to its column `to`: relu(s) - relu(-s), with the w of all nodes.
  void answer(TokenLayer& layer, int w, int to) const {
    for (const double sign : {1.0, -1.0}) {
      TokenHead head = product(w, sign, true);
      head.values.push_back({TokenForm{{}, sign}, to});
      layer.heads.push_back(std::move(head));
    }
  }

 private:
  int d_, query_;
  TokenNetwork network_;
};

// The sample as examples, in double.
struct Examples {
  Examples(const LearningProgram& program, std::span<const double> sample)
      : d(program.whole("d")), columns(d + 1), numbers(sample) {}
  std::span<const double> x(int node) const { return numbers.subspan(node * columns, d); }
  double y(int node) const { return numbers[node * columns + d]; }
  double at(int node, const Vector& w) const {
    return std::inner_product(w.begin(), w.end(), x(node).begin(), 0.0);
  }
  int64_t d, columns;
  std::span<const double> numbers;
};

double norm(std::span<const double> v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
}

// Steps over nodes 1 .. count; `proximal` is what follows each one. `largest` becomes max |w|.
template <class Proximal>
Vector descended(const LearningProgram& program, const Examples& examples, int count, double ridge,
                 const Proximal& proximal, double& largest) {
  const double rate = program["rate"];
  Vector w(examples.d), gradient(examples.d);
  for (int step = 0; step < program.whole("steps"); ++step) {
    for (int64_t k = 0; k < examples.d; ++k) gradient[k] = ridge * w[k];
    for (int j = 1; j <= count; ++j) {
      const double residual = examples.at(j, w) - examples.y(j);
      for (int64_t k = 0; k < examples.d; ++k) gradient[k] += residual * examples.x(j)[k] / count;
    }
    for (int64_t k = 0; k < examples.d; ++k) w[k] = proximal(w[k] - rate * gradient[k]);
    largest = std::max(largest, norm(w));
  }
  return w;
}

constexpr auto as_it_is = [](double w) { return w; };

ProgramParameter whole_number(const char* name, double value, double low, double high) {
  return {name, value, true, low, high};
}
ProgramParameter real_number(const char* name, double value) {
  return {name, value, false, 0.0, 1e6};
}
std::vector<ProgramParameter> descent_parameters() {
  return {whole_number("d", 5, 1, 64), whole_number("steps", 20, 1, 1000),
          real_number("rate", 0.2)};
}
std::vector<ProgramParameter> with_more(std::vector<ProgramParameter> more) {
  std::vector<ProgramParameter> all = descent_parameters();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::vector<ProgramParameter> price_parameters(int /*examples*/, double price) {
  return with_more({real_number("lambda", price)});
}

// 1/2N sum_j (<w, x_j> - y_j)^2 + lambda/2 |w|^2

TokenNetwork ridge_network(const LearningProgram& program) {
  Tokens tokens(program);
  const int w = tokens.add(tokens.d());
  for (int step = 0; step < program.whole("steps"); ++step) {
    tokens.descend(tokens.layer(), w, program["rate"], program["lambda"], program.examples(),
                   {tokens.query()});
  }
  tokens.answer(tokens.layer(), w, tokens.y());
  return tokens.take();
}

Learned learn_ridge(const LearningProgram& program, std::span<const double> sample) {
  const Examples examples(program, sample);
  Learned learned;
  const Vector w =
      descended(program, examples, program.examples(), program["lambda"], as_it_is, learned.size);
  learned.answer = examples.at(0, w);
  learned.size *= norm(examples.x(0));
  return learned;
}

// 1/2N sum_j (<w, x_j> - y_j)^2 + lambda |w|_1: after each step every weight is drawn towards zero
// by theta = rate lambda, in the MLP: w - relu(w) + relu(-w) + relu(w - theta) - relu(-w - theta).

TokenNetwork lasso_network(const LearningProgram& program) {
  Tokens tokens(program);
  const int w = tokens.add(tokens.d());
  const double theta = program["rate"] * program["lambda"];
  for (int step = 0; step < program.whole("steps"); ++step) {
    TokenLayer& layer = tokens.layer();
    tokens.descend(layer, w, program["rate"], 0, program.examples(), {tokens.query()});
    for (int k = 0; k < tokens.d(); ++k) {
      for (const double sign : {1.0, -1.0}) {
        layer.units.push_back({TokenForm{{{w + k, sign}}}, {{w + k, -sign}}});
        layer.units.push_back({TokenForm{{{w + k, sign}}, -theta}, {{w + k, sign}}});
      }
    }
  }
  tokens.answer(tokens.layer(), w, tokens.y());
  return tokens.take();
}

Learned learn_lasso(const LearningProgram& program, std::span<const double> sample) {
  const Examples examples(program, sample);
  const double theta = program["rate"] * program["lambda"];
  Learned learned;
  const Vector w = descended(
      program, examples, program.examples(), 0,
      [&](double v) { return std::copysign(std::max(std::abs(v) - theta, 0.0), v); }, learned.size);
  learned.answer = examples.at(0, w);
  learned.size *= norm(examples.x(0));
  return learned;
}

// Two ridges on all but the last `validation` examples; the one with the smaller mean square on
// those answers. Where the second is better by less than `margin`, the answer is between the two:
//   p = 1 - min(max((L_1 - L_2) / margin, 0), 1),   w = p w_1 + (1 - p) w_2
// A loss is sum_j relu(r_j) r_j + relu(-r_j) (-r_j), r_j = <w, x_j> - y_j: score and value of a
// head are both linear in node j, so squares are exact.

std::vector<ProgramParameter> select_parameters(int examples) {
  return with_more({real_number("lambda1", 0.005),
                    real_number("lambda2", 0.125),
                    whole_number("validation", std::max(1, examples / 4), 1, examples - 1),
                    {"margin", 0.01, false, 1e-6, 1e6}});
}

TokenNetwork select_network(const LearningProgram& program) {
  Tokens tokens(program);
  const int d = tokens.d(), held = program.whole("validation");
  const int training = program.examples() - held;
  Vector validates(program.nodes()), does_not(program.nodes());
  for (int i = 0; i < program.nodes(); ++i) {
    validates[i] = i > training ? 1 : 0;
    does_not[i] = 1 - validates[i];
  }
  const int validation = tokens.constant(validates), others = tokens.constant(does_not);
  const int w[] = {tokens.add(d), tokens.add(d)};
  const int guess[] = {tokens.add(), tokens.add()}, loss[] = {tokens.add(), tokens.add()};
  const int share[] = {tokens.add(), tokens.add()};
  const int chosen = tokens.add(d);
  const double prices[] = {program["lambda1"], program["lambda2"]};
  for (int step = 0; step < program.whole("steps"); ++step) {
    TokenLayer& layer = tokens.layer();
    for (int k = 0; k < 2; ++k) {
      tokens.descend(layer, w[k], program["rate"], prices[k], training,
                     {tokens.query(), validation});
    }
  }
  TokenLayer& guesses = tokens.layer();
  for (int k = 0; k < 2; ++k) tokens.answer(guesses, w[k], guess[k]);
  TokenLayer& losses = tokens.layer();
  for (int k = 0; k < 2; ++k) {
    for (const double sign : {1.0, -1.0}) {
      const auto residual = [&](double factor) {
        return TokenForm{{{guess[k], factor}, {tokens.y(), -factor}}};
      };
      TokenHead head;
      head.score.push_back({TokenForm{{}, 1}, residual(sign)});
      head.score.push_back({TokenForm{{}, shut}, TokenForm{{{others, -1}}}});
      head.values.push_back({residual(sign * program.nodes() / held), loss[k]});
      losses.heads.push_back(std::move(head));
    }
  }
  // relu(z) - relu(z - 1) is z within 0 and 1, and z the difference over the margin.
  const double steep = 1 / program["margin"];
  for (const double from : {0.0, 1.0}) {
    const double sign = from == 0 ? -1 : 1;
    losses.units.push_back({TokenForm{{{loss[0], steep}, {loss[1], -steep}}, -from},
                            {{share[0], sign}, {share[1], -sign}}});
  }
  losses.units.push_back({TokenForm{{}, 1}, {{share[0], 1}}});
  TokenLayer& mixture = tokens.layer();
  for (int k = 0; k < 2; ++k) {
    TokenHead head;
    head.score.push_back({TokenForm{{{share[k], 1}}}, TokenForm{{}, 1}});
    for (int c = 0; c < d; ++c) head.values.push_back({TokenForm{{{w[k] + c, 1}}}, chosen + c});
    mixture.heads.push_back(std::move(head));
  }
  tokens.answer(tokens.layer(), chosen, tokens.y());
  return tokens.take();
}

Learned learn_select(const LearningProgram& program, std::span<const double> sample) {
  const Examples examples(program, sample);
  const int held = program.whole("validation"), training = program.examples() - held;
  Learned learned;
  double losses[2] = {}, answers[2] = {}, largest = 0;
  for (int k = 0; k < 2; ++k) {
    const double ridge = program[k == 0 ? "lambda1" : "lambda2"];
    const Vector w = descended(program, examples, training, ridge, as_it_is, learned.size);
    for (int j = training + 1; j < program.nodes(); ++j) {
      const double guess = examples.at(j, w), y = examples.y(j);
      losses[k] += (guess - y) * (guess - y) / held;
      largest =
          std::max(largest, (std::abs(guess) + std::abs(y)) * (std::abs(guess) + std::abs(y)));
    }
    answers[k] = examples.at(0, w);
  }
  const double second = std::clamp((losses[0] - losses[1]) / program["margin"], 0.0, 1.0);
  learned.answer = (1 - second) * answers[0] + second * answers[1];
  learned.size *= norm(examples.x(0));
  learned.apart = std::abs(answers[0] - answers[1]);
  learned.steepness = 2 * largest / program["margin"];
  return learned;
}

}  // namespace

const std::vector<LearningAlgorithm>& learning_algorithms() {
  static const std::vector<LearningAlgorithm> rows = {
      {"in-context-lasso", "least squares with a price on |w|_1, by proximal gradient steps", 1,
       [](int examples) { return price_parameters(examples, 0.01); }, lasso_network, learn_lasso},
      {"in-context-ridge", "ridge regression by gradient descent on the examples of the sample", 1,
       [](int examples) { return price_parameters(examples, 0.1); }, ridge_network, learn_ridge},
      {"in-context-select", "the better of two ridges on examples that are held back", 2,
       select_parameters, select_network, learn_select},
  };
  return rows;
}

}  // namespace posattn
