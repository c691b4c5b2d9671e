#include "posattn/bounds/count_bound.h"

#include <algorithm>
#include <cmath>

namespace posattn::bounds {
namespace {

constexpr int radii = 59;

double radius_of(int j, double clip) { return clip * clip * std::exp(-0.5 * j); }

// Parameters that are covered together.
struct Ball {
  int64_t dimensions = 0;
  double log_sensitivity = 0;        // ln P: of the output to an error of what they are applied to
  std::optional<double> log_radius;  // ln r, in that error; absent: attention, by lemma 5
};

class DataFreeCover {
 public:
  DataFreeCover(const NetworkNorms& exact, const BoundSetting& setting)
      : rounded_(on_grid(exact, BoundKind::count)), clip_(setting.clip) {
    const NetworkNorms& norms = rounded_.norms;
    const Propagation travel = propagate(norms, setting.range);
    for (int l = 0; l < norms.depth(); ++l) add_layer(l, travel);
    balls_.push_back(
        {.dimensions = norms.layers.back().out + 1,
         .log_sensitivity = 0,
         .log_radius = norms.output_joined + log_sum({2 * travel.state.back(), 0}) / 2});
    for (const Ball& ball : balls_) parameters_ += ball.dimensions;
  }

  int64_t parameters() const { return parameters_; }
  double grid_cost() const { return rounded_.cost; }

  // ln N(eps) for the losses: every ball has the part of the error that its dimensions are of all.
  double entropy(double radius) const {
    const double log_error = std::log(radius) - std::log(2 * clip_);
    double sum = 0;
    for (const Ball& ball : balls_) {
      const double share = static_cast<double>(ball.dimensions) / static_cast<double>(parameters_);
      const double log_radius = log_error + std::log(share) - ball.log_sensitivity;
      sum += ball.log_radius ? static_cast<double>(ball.dimensions) *
                                   log_sum({0, std::log(2.0) + *ball.log_radius - log_radius})
                             : nodes() * attention_row_entropy(log_radius, nodes());
    }
    return sum;
  }

 private:
  int nodes() const { return rounded_.norms.nodes; }

  void add_layer(int l, const Propagation& travel) {
    const LayerNorms& layer = rounded_.norms.layers[l];
    const int64_t in = layer.in;
    balls_.push_back({.dimensions = layer.out * ((layer.heads() + 1) * in + 1),
                      .log_sensitivity = travel.sensitivity[l],
                      .log_radius = layer.joined + travel.joined_state(l, layer.heads())});
    for (int h = 0; h < layer.heads(); ++h) {
      Ball attention{.dimensions = int64_t{nodes()} * (nodes() - 1),
                     .log_sensitivity = travel.sensitivity[l] + layer.maps[1 + h] + travel.state[l],
                     .log_radius = {}};
      if (!rounded_.norms.positional) {
        attention.dimensions = (in + 1) * in;
        attention.log_radius = layer.scores_joined[h] + travel.score_state(l);
      }
      balls_.push_back(attention);
    }
  }

  RoundedNorms rounded_;
  double clip_;
  std::vector<Ball> balls_;
  int64_t parameters_ = 0;
};

constexpr int row_steps = 10;  // q
// Beyond e^30 the next integer is so near that this much more in the logarithm covers it.
constexpr double whole_up_to = 30, next_whole = 1e-12;

}  // namespace

CountBound count_bound(const NetworkNorms& norms, const BoundSetting& setting) {
  check(setting);
  const DataFreeCover cover(norms, setting);
  const double m = setting.samples, clip = setting.clip;
  CountBound best{.gap = std::numeric_limits<double>::infinity(),
                  .parameters = cover.parameters(),
                  .grid_cost = cover.grid_cost()};
  for (int j = 1; j <= radii; ++j) {
    const double radius = radius_of(j, clip), entropy = cover.entropy(radius);
    const double nats = entropy + cover.grid_cost() + std::log(2 / setting.delta);
    const double gap = 2 * radius + clip * clip * std::sqrt(nats / (2 * m));
    if (gap >= best.gap) continue;
    best.gap = gap;
    best.radius = radius;
    best.entropy = entropy;
  }
  return best;
}

double small_loss_bound(const NetworkNorms& norms, const BoundSetting& setting,
                        double training_loss) {
  check(setting);
  const DataFreeCover cover(norms, setting);
  const double m = setting.samples, square = setting.clip * setting.clip;
  double best = square;
  for (int j = 1; j <= radii; ++j) {
    const double radius = radius_of(j, setting.clip);
    const double nats = cover.entropy(radius) + cover.grid_cost() + std::log(radii / setting.delta);
    const double share = std::min(1.0, (training_loss + radius) / square);
    best = std::min(best, square * kl_inverse(share, nats / m) + radius);
  }
  return best;
}

double binary_kl(double q, double p) {
  const double happens = q > 0 ? q * std::log(q / p) : 0;
  const double not_so = q < 1 ? (1 - q) * (std::log1p(-q) - std::log1p(-p)) : 0;
  return happens + not_so;
}

double kl_inverse(double q, double bound) {
  // kl(q || p) grows in p >= q; `high` always lies above the solution (or is 1).
  double low = q, high = 1;
  while (true) {
    const double middle = low + (high - low) / 2;
    if (!(low < middle && middle < high)) return high;  // no number between them
    (binary_kl(q, middle) <= bound ? low : high) = middle;
  }
}

double row_profiles(int rows) {
  double sum = 0;
  for (int i = 1; i <= rows; ++i) {
    sum += std::log((static_cast<double>(row_steps + 1) * rows + i) / i);
  }
  return sum;
}

std::optional<double> log_attention_steps(double log_radius, int nodes,
                                          std::optional<double> samples) {
  if (log_radius >= std::log(2.0)) return {};
  // Largest remainders: ceil(N / (2 radius)).
  const double remainders = std::log(nodes / 2.0) - log_radius;
  double steps = remainders < whole_up_to ? std::log(std::ceil(std::exp(remainders)))
                                          : remainders + next_whole;
  if (samples) {
    // Maurey and Pinelis: floor(8 ln(2m) / radius^2) + 1.
    const double draws = std::log(8 * std::log(2.0 * *samples)) - 2 * log_radius;
    steps = std::min(steps, draws < whole_up_to ? std::log(std::floor(std::exp(draws)) + 1)
                                                : draws + next_whole);
  }
  return steps;
}

double attention_row_entropy(double log_radius, int nodes, std::optional<double> samples) {
  const std::optional<double> steps = log_attention_steps(log_radius, nodes, samples);
  if (!steps) return 0;
  // ln C(k + N - 1, N - 1), k = e^steps
  double sum = 0;
  for (int i = 1; i < nodes; ++i) {
    const double log_i = std::log(i);
    sum += log_sum({*steps, log_i}) - log_i;
  }
  return sum;
}

Chain chain(const std::function<double(double)>& log_entropy, double samples, double clip) {
  constexpr int most_links = 40, patience = 3;
  const double log_samples = std::log(samples);
  Chain best{.log_average = -log_zero};
  double links = log_zero, entropy_before = log_zero;
  double log_radius = 2 * std::log(clip) - std::log(2.0);
  for (int k = 1; k <= most_links && k <= best.links + patience; ++k) {
    log_radius -= std::log(2.0);
    const double entropy = log_entropy(log_radius);
    const double link = std::log(3.0) + log_radius +
                        (std::log(2.0) - log_samples + log_sum({entropy, entropy_before})) / 2;
    links = log_sum({links, link});
    const double average = log_sum({log_radius, links});
    if (average < best.log_average) best = {.log_average = average, .links = k};
    entropy_before = entropy;
  }
  return best;
}

}  // namespace posattn::bounds
