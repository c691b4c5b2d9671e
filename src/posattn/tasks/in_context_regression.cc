// Regression in context (arXiv 2306.04637): node 0 holds the query x_0, the others hold examples
// (x_i, y_i), and node 0 asks for y_0. The columns are [x | y], with y = 0 at node 0. Each sample
// has weights w of its own, and x ~ N(0, I):
//   linear, noisy, mixed   y = w.x + sigma z, w ~ N(0, I / d); sigma is 0, 0.5, or one of 0.1 and
//                          0.5 for each sample
//   sparse                 y = w.x, w ~ N(0, 1 / 3) at three random places and 0 elsewhere
//   logistic               y is the sign of w.x, w ~ N(0, I / d)
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/tasks/subset.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

using Vector = std::vector<double>;

enum class RegressionModel { linear, noisy, mixed, sparse, logistic };
const std::vector<std::string> regression_models = {"linear", "noisy", "mixed", "sparse",
                                                    "logistic"};
constexpr double noises[] = {0.1, 0.5};  // of `mixed`; the larger one is that of `noisy`
constexpr int sparse_places = 3;

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// What a learner sees. A node whose x is 0 throughout holds no example.
struct Examples {
  Examples(const SampleView& sample, int dimensions) : d(dimensions), query(dimensions) {
    const int64_t columns = d + 1, nodes = static_cast<int64_t>(sample.values.size()) / columns;
    std::ranges::copy(sample.values.first(d), query.begin());
    for (int64_t i = 1; i < nodes; ++i) {
      const std::span<const float> node = sample.values.subspan(i * columns, columns);
      if (std::ranges::all_of(node.first(d), [](float value) { return value == 0; })) continue;
      x.emplace_back(node.begin(), node.begin() + d);
      y.push_back(node[d]);
    }
  }
  size_t count() const { return y.size(); }

  int d;
  Vector query, y;
  std::vector<Vector> x;
};

// Solves A w = b for a symmetric positive definite A [n, n] by Cholesky's factors, in place, and
// gives log det A. A pivot that rounding leaves at 0 is taken as tiny.
double solve_definite(Vector& a, Vector& b) {
  const size_t n = b.size();
  double log_det = 0;
  for (size_t j = 0; j < n; ++j) {
    const std::span<double> row = std::span(a).subspan(j * n, n);
    const double pivot = row[j] - dot(row.first(j), row.first(j));
    row[j] = std::sqrt(std::max(pivot, 1e-12 * std::max(row[j], 1e-12)));
    log_det += 2 * std::log(row[j]);
    for (size_t i = j + 1; i < n; ++i) {
      const std::span<double> below = std::span(a).subspan(i * n, n);
      below[j] = (below[j] - dot(below.first(j), row.first(j))) / row[j];
    }
    b[j] = (b[j] - dot(row.first(j), std::span(b).first(j))) / row[j];
  }
  for (size_t j = n; j-- > 0;) {
    b[j] /= a[j * n + j];
    for (size_t i = 0; i < j; ++i) b[i] -= a[j * n + i] * b[j];
  }
  return log_det;
}

Vector moments(const Examples& seen) {  // X^T y
  Vector sums(seen.d);
  for (size_t i = 0; i < seen.count(); ++i) {
    for (int k = 0; k < seen.d; ++k) sums[k] += seen.x[i][k] * seen.y[i];
  }
  return sums;
}

struct Ridge {
  Vector weights;
  double log_det = 0;  // of X^T X + lambda I
};

// argmin |X w - y|^2 + lambda |w|^2
Ridge ridge(const Examples& seen, double lambda) {
  const size_t d = seen.query.size();
  Vector gram(d * d);
  for (size_t k = 0; k < d; ++k) gram[k * d + k] = lambda;
  for (const Vector& x : seen.x) {
    for (size_t k = 0; k < d * d; ++k) gram[k] += x[k / d] * x[k % d];
  }
  Ridge found{moments(seen)};
  found.log_det = solve_definite(gram, found.weights);
  return found;
}

// The shortest among the weights of least squares: w = X^T (X X^T)^-1 y where examples are fewer
// than dimensions.
double least_squares(const Examples& seen) {
  const size_t n = seen.count();
  if (n >= seen.query.size()) return dot(ridge(seen, 0).weights, seen.query);
  Vector gram(n * n), shares = seen.y;
  for (size_t k = 0; k < n * n; ++k) gram[k] = dot(seen.x[k / n], seen.x[k % n]);
  solve_definite(gram, shares);
  double answer = 0;
  for (size_t i = 0; i < n; ++i) answer += shares[i] * dot(seen.x[i], seen.query);
  return answer;
}

// The best weights for noise sigma and w ~ N(0, I / d): ridge with lambda = d sigma^2.
double ridge_for(const Examples& seen, double sigma) {
  return dot(ridge(seen, seen.d * sigma * sigma).weights, seen.query);
}

// The best answer where sigma is one of `noises` with equal chances: the mean of theirs, weighted
// by the likelihood of y ~ N(0, S), S = sigma^2 I + X X^T / d. With lambda = d sigma^2 and the
// ridge's weights w, log det S = (n - d) log sigma^2 + log det(X^T X + lambda I) - d log d, and
// y^T S^-1 y = y^T (y - X w) / sigma^2.
double bayes_mixture(const Examples& seen) {
  Vector answers, logs;
  const Vector sums = moments(seen);
  for (const double sigma : noises) {
    const double square = sigma * sigma;
    const Ridge found = ridge(seen, seen.d * square);
    const double free = static_cast<double>(seen.count()) - seen.d;
    answers.push_back(dot(found.weights, seen.query));
    logs.push_back(-0.5 * (free * std::log(square) + found.log_det +
                           (dot(seen.y, seen.y) - dot(sums, found.weights)) / square));
  }
  const double largest = *std::ranges::max_element(logs);
  double total = 0, answer = 0;
  for (size_t k = 0; k < logs.size(); ++k) {
    const double share = std::exp(logs[k] - largest);
    total += share;
    answer += share * answers[k];
  }
  return answer / total;
}

// argmin |X w - y|^2 / (2 n) + lambda |w|_1, weight by weight until none moves.
double lasso(const Examples& seen) {
  constexpr double lambda = 0.01, still = 1e-9;
  constexpr int most_rounds = 2000;
  const auto n = static_cast<double>(seen.count());
  Vector weights(seen.d), left = seen.y;
  double moved = 1;
  for (int round = 0; round < most_rounds && moved > still; ++round) {
    moved = 0;
    for (int k = 0; k < seen.d; ++k) {
      double slope = 0, square = 0;
      for (size_t i = 0; i < seen.count(); ++i) {
        slope += seen.x[i][k] * (left[i] + weights[k] * seen.x[i][k]) / n;
        square += seen.x[i][k] * seen.x[i][k] / n;
      }
      const double shrunk = std::max(std::abs(slope) - lambda, 0.0);
      const double weight = square > 0 ? std::copysign(shrunk, slope) / square : 0;
      for (size_t i = 0; i < seen.count(); ++i) left[i] -= (weight - weights[k]) * seen.x[i][k];
      moved = std::max(moved, std::abs(weight - weights[k]));
      weights[k] = weight;
    }
  }
  return dot(weights, seen.query);
}

// What logistic regression says of the signs of y: P(y > 0) - P(y < 0) = tanh(w.x / 2), times the
// mean |y|. With z_i = sign(y_i) x_i and s_i = 1 / (1 + exp(w.z_i)) the weights have the least
//   sum_i log(1 + exp(-w.z_i)) + lambda / 2 |w|^2,
// its gradient is lambda w - sum s_i z_i, and its Hessian lambda I + sum s_i (1 - s_i) z_i z_i^T:
// Newton's steps, halved until the loss falls. Signs of w.x are separable, so without lambda w is
// infinite. The best answer in squared error is the mean sign over all w ~ N(0, I / d) that fit.
// With lambda = 0.1 this one has an error 2 to 10 % above, for d = 5 and 10 to 20 examples.
double logistic(const Examples& seen) {
  constexpr double lambda = 0.1, still = 1e-9;
  constexpr int most_steps = 100, most_halvings = 40;
  const size_t d = seen.query.size();
  std::vector<Vector> signed_x = seen.x;
  double size = 0;
  for (size_t i = 0; i < seen.count(); ++i) {
    size += std::abs(seen.y[i]) / static_cast<double>(seen.count());
    for (double& value : signed_x[i]) value *= std::copysign(1, seen.y[i]);
  }
  const auto loss = [&](const Vector& weights) {
    double sum = lambda / 2 * dot(weights, weights);
    for (const Vector& z : signed_x) {
      const double margin = dot(weights, z);
      sum += std::max(-margin, 0.0) + std::log1p(std::exp(-std::abs(margin)));
    }
    return sum;
  };
  Vector weights(d);
  for (int step = 0; step < most_steps; ++step) {
    Vector direction(d), hessian(d * d);
    for (size_t k = 0; k < d; ++k) {
      direction[k] = -lambda * weights[k];
      hessian[k * d + k] = lambda;
    }
    for (const Vector& z : signed_x) {
      const double share = 1 / (1 + std::exp(dot(weights, z)));
      for (size_t k = 0; k < d; ++k) direction[k] += share * z[k];
      for (size_t k = 0; k < d * d; ++k) hessian[k] += share * (1 - share) * z[k / d] * z[k % d];
    }
    if (std::sqrt(dot(direction, direction)) < still) break;
    solve_definite(hessian, direction);
    const double before = loss(weights);
    const Vector from = weights;
    double length = 1;
    for (int halving = 0; halving < most_halvings; ++halving, length /= 2) {
      for (size_t k = 0; k < d; ++k) weights[k] = from[k] + length * direction[k];
      if (loss(weights) <= before) break;
    }
  }
  return size * std::tanh(dot(weights, seen.query) / 2);
}

// One step of gradient descent from 0: w = X^T y / n, the mean of y x.
double averaging(const Examples& seen) {
  return seen.count() == 0 ? 0 : dot(moments(seen), seen.query) / static_cast<double>(seen.count());
}

class InContextRegression final : public Task {
 public:
  InContextRegression(RegressionModel model, int d) : model_(model), d_(d) {}

  std::string_view name() const override { return "in-context-regression"; }
  std::string_view description() const override {
    return "the value at the first node, learned from examples in the same sample";
  }
  std::vector<TaskParameter> parameters() const override {
    return {{"model", "how y follows from x", 0, 0, 0, regression_models},
            {"d", "dimensions of x", 5, 1, 64}};
  }
  std::unique_ptr<const Task> variant(std::span<const int> values) const override {
    return std::make_unique<InContextRegression>(static_cast<RegressionModel>(values[0]),
                                                 values[1]);
  }
  TaskShape shape(int length) const override {
    return {.real_nodes = length, .data_columns = d_ + 1, .read_nodes = 1};
  }
  int shortest_length() const override { return 2; }
  std::vector<std::pair<std::string, std::string>> settings() const override {
    return {{"length", "11"}, {"scratch-nodes", "0"}};
  }
  std::vector<TestAxis> test_axes() const override {
    return {{"c", "y times c"},
            {"x-scale", "x times this, and y as it follows", "scale of x"},
            {"noise", "y = w.x + noise z, z ~ N(0, 1)", "noise sigma"},
            {"examples", "so many examples; the nodes after them hold zeros", "number of examples",
             true}};
  }

  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    const auto at = [&](std::string_view axis, double otherwise) {
      return sampling.axis == axis ? sampling.x : otherwise;
    };
    const double examples = at("examples", length - 1);
    if (examples < 0 || examples > length - 1 || examples != std::floor(examples)) {
      throw Error(ExitCode::usage, fmt::format("examples = {} of {} nodes", examples, length),
                  fmt::format("a whole number from 0 to {}", length - 1));
    }
    const double scale = at("x-scale", 1), y_scale = at("c", 1);
    const Vector weights = draw_weights(random);
    const double sigma = at("noise", draw_noise(random));
    std::ranges::fill(room.values, 0.0F);
    std::ranges::fill(room.targets, 0.0F);
    for (int i = 0; i <= examples; ++i) {
      const std::span<float> node = room.values.subspan(int64_t{1} * i * (d_ + 1), d_ + 1);
      double y = 0;
      for (int k = 0; k < d_; ++k) {
        node[k] = static_cast<float>(scale * random.normal());
        y += weights[k] * node[k];
      }
      y += sigma * random.normal();
      if (model_ == RegressionModel::logistic) y = y < 0 ? -1 : 1;
      (i == 0 ? room.targets[0] : node[d_]) = static_cast<float>(y_scale * y);
    }
  }

  // From given numbers alone the answer is that of the best learner.
  void solve(int length, std::span<const float> input, std::span<float> target) const override {
    std::ranges::fill(target, 0.0F);
    baselines().front().predict(length, {.values = input, .tokens = {}}, target);
  }

  // The best for the model comes first.
  std::vector<Baseline> baselines() const override {
    const auto learner = [d = d_](const char* name, const char* description, auto answer) {
      return Baseline{name, description,
                      [d, answer](int, const SampleView& sample, std::span<float> outputs) {
                        outputs[0] = static_cast<float>(answer(Examples(sample, d)));
                      }};
    };
    std::vector<Baseline> all = {
        learner("least-squares", "the shortest weights of least squares", least_squares),
        learner("ridge", "the best linear weights where the noise is 0.5",
                [](const Examples& seen) { return ridge_for(seen, noises[1]); }),
        learner("bayes-mixture", "the best answer where the noise is 0.1 or 0.5", bayes_mixture),
        learner("lasso", "least squares with a price of 0.01 on |w|", lasso),
        learner("logistic", "logistic regression with a price of 0.05 on |w|^2", logistic),
        learner("averaging", "weights that are the mean of y x", averaging),
        learner("zero", "answers 0", [](const Examples&) { return 0.0; })};
    constexpr int best[] = {0, 1, 2, 3, 4};
    const auto first = all.begin() + best[static_cast<int>(model_)];
    std::rotate(all.begin(), first, first + 1);
    return all;
  }

 private:
  Vector draw_weights(RandomStream& random) const {
    Vector weights(d_);
    if (model_ == RegressionModel::sparse) {
      const int places = std::min(d_, sparse_places);
      const std::vector<uint8_t> chosen = random_subset(random, d_, places);
      for (int k = 0; k < d_; ++k) weights[k] = chosen[k] * random.normal() / std::sqrt(places);
    } else {
      for (double& weight : weights) weight = random.normal() / std::sqrt(d_);
    }
    return weights;
  }
  double draw_noise(RandomStream& random) const {
    if (model_ == RegressionModel::noisy) return noises[1];
    return model_ == RegressionModel::mixed ? noises[random.below(2)] : 0;
  }

  RegressionModel model_;
  int d_;
};

}  // namespace

const Task& in_context_regression_task() {
  static const InContextRegression task(RegressionModel::linear, 5);
  return task;
}

}  // namespace posattn
