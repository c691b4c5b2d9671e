#include <gtest/gtest.h>

#include <cmath>

#include "posattn/bounds/golden_network_test.h"
#include "posattn/bounds/network_norms.h"
#include "posattn/bounds/weight_norms.h"
#include "posattn/training/run.h"
#include "posattn/training/small_run_test.h"

namespace posattn::bounds {
namespace {

double row_length(const Matrix& matrix, int row) {
  return length_of({matrix.row(row), matrix.row(row) + matrix.columns});
}

double longest_row(const Matrix& matrix) {
  double longest = 0;
  for (int r = 0; r < matrix.rows; ++r) longest = std::max(longest, row_length(matrix, r));
  return longest;
}

Matrix difference(Matrix left, const Matrix& right) {
  simulation::add(left.values, right.values, -1);
  return left;
}

void disturb(std::vector<double>& values, double size, RandomStream& random) {
  for (double& x : values) x += size * random.normal();
}

// Another element of a cover: every matrix a little wrong, attention still a distribution.
CollapsedLayer disturbed(CollapsedLayer layer, double size, RandomStream& random) {
  for (Matrix& map : layer.maps) disturb(map.values, size, random);
  disturb(layer.offset, size, random);
  for (Matrix& scores : layer.scores) disturb(scores.values, size, random);
  for (auto& offsets : layer.score_offsets) disturb(offsets, size, random);
  for (Matrix& attention : layer.attention) {
    for (int i = 0; i < attention.rows; ++i) {
      double sum = 0;
      for (int j = 0; j < attention.columns; ++j) {
        sum += attention(i, j) *= std::exp(5 * size * random.normal());
      }
      for (int j = 0; j < attention.columns; ++j) attention(i, j) /= sum;
    }
  }
  return layer;
}

// Rows longer than this are shortened to it.
Matrix on_ball(Matrix state, double radius) {
  for (int i = 0; i < state.rows; ++i) {
    const double factor = std::min(1.0, radius / row_length(state, i));
    for (int c = 0; c < state.columns; ++c) state(i, c) *= factor;
  }
  return state;
}

// r_h: the l1 error of attention from positions, the error of scores from data.
double attention_error(const CollapsedLayer& exact, const CollapsedLayer& wrong, int head,
                       const Matrix& state) {
  double largest = 0;
  if (exact.scores.empty()) {
    const Matrix error = difference(exact.attention[head], wrong.attention[head]);
    for (int i = 0; i < error.rows; ++i) {
      double sum = 0;
      for (int j = 0; j < error.columns; ++j) sum += std::abs(error(i, j));
      largest = std::max(largest, sum);
    }
    return largest;
  }
  const Matrix scores = product(product(state, difference(exact.scores[head], wrong.scores[head])),
                                transposed(state));
  std::vector<double> offsets = exact.score_offsets[head];
  simulation::add(offsets, wrong.score_offsets[head], -1);
  const std::vector<double> of_keys = product(state, offsets);
  for (int i = 0; i < scores.rows; ++i) {
    for (int j = 0; j < scores.columns; ++j) {
      largest = std::max(largest, std::abs(scores(i, j) + of_keys[j]));
    }
  }
  return largest;
}

// eps_l: the error of the maps on [s; A_1 s; ..; A_H s; 1].
double map_error(const CollapsedLayer& exact, const CollapsedLayer& wrong, const Matrix& state) {
  Matrix sum(state.rows, exact.out());
  for (int i = 0; i < sum.rows; ++i) {
    for (int c = 0; c < sum.columns; ++c) sum(i, c) = exact.offset[c] - wrong.offset[c];
  }
  for (int h = 0; h <= exact.heads(); ++h) {
    const Matrix mixed = h == 0 ? state : product(attention_of(wrong, h - 1, state), state);
    const Matrix error = difference(exact.maps[h], wrong.maps[h]);
    simulation::add(sum.values, product(mixed, transposed(error)).values);
  }
  return longest_row(sum);
}

// Follows a network and a perturbed copy. Checks lemma 7 layer by layer, and the error of the
// output against the sum of all errors before it.
void expect_lemma_7(const CollapsedNetwork& network, double range, double error_size,
                    RandomStream& random) {
  const NetworkNorms norms = norms_of(network);
  const Propagation travel = propagate(norms, range);
  constexpr double slack = 1 + 1e-9, rounding = 1e-12;
  std::vector<double> x(static_cast<size_t>(network.real_nodes));
  for (double& value : x) value = range * (2 * random.uniform() - 1);
  Matrix state = first_state(network, x), wrong = state;
  double promised = 0, before = 0;
  for (size_t l = 0; l < network.layers.size(); ++l) {
    const CollapsedLayer& layer = network.layers[l];
    const CollapsedLayer other = disturbed(layer, error_size, random);
    const double ball = std::exp(travel.state[l]), sensitivity = std::exp(travel.sensitivity[l]);
    ASSERT_LE(longest_row(state), ball * slack);
    double error = map_error(layer, other, wrong);
    for (int h = 0; h < layer.heads(); ++h) {
      error +=
          std::exp(norms.layers[l].maps[1 + h]) * ball * attention_error(layer, other, h, wrong);
    }
    state = run_layer(layer, state);
    wrong = on_ball(run_layer(other, wrong), std::exp(travel.state[l + 1]));
    const double after = longest_row(difference(state, wrong));
    EXPECT_LE(after, (std::exp(travel.amplification[l]) * before + error) * slack + rounding)
        << "layer " << l;
    before = after;
    promised += sensitivity * error;
  }
  ASSERT_LE(longest_row(state), std::exp(travel.state.back()) * slack);
  double found = 0;
  for (const double d : product(difference(state, wrong), network.output)) {
    found = std::max(found, std::abs(d));
  }
  EXPECT_LE(found, promised * slack + rounding);
}

CollapsedNetwork random_network(const char* architecture, uint64_t seed, RandomStream& random) {
  const ModelSpec spec = testing::spec_of({.architecture = architecture,
                                           .depth = 1 + static_cast<int>(random.below(3)),
                                           .width = 2 * (1 + static_cast<int>(random.below(5))),
                                           .length = 1 + static_cast<int>(random.below(5))});
  Parameters<double> parameters = testing::golden_parameters(spec, seed);
  const double factor = 0.3 + 3 * random.uniform();
  for (double& w : parameters.values()) w *= factor;
  return collapse(spec, parameters);
}

TEST(Propagation, HoldsOnRandomNetworks) {
  RandomStream random(1, Purpose::test_data, 0, 0);
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const char* architecture = seed % 2 == 0 ? "standard" : "positional";
    SCOPED_TRACE(std::string(architecture) + " " + std::to_string(seed));
    const CollapsedNetwork network = random_network(architecture, seed, random);
    for (const double size : {0.0, 0.01, 0.3}) expect_lemma_7(network, 2, size, random);
  }
}

TEST(Propagation, HoldsOnTrainedNetworks) {
  RandomStream random(2, Purpose::test_data, 0, 0);
  for (const char* architecture : {"positional", "standard"}) {
    SCOPED_TRACE(architecture);
    RunConfig config = small_run();
    config.architecture = architecture;
    config.depth = 2;
    config.lr = 0.02;
    config.epochs = 100;
    posattn::Run run(config, 1);
    while (!run.finished()) run.advance_epoch();
    const Model model = run.model();
    const CollapsedNetwork network = collapse(model.spec, to_double(model.parameters));
    for (int trial = 0; trial < 100; ++trial) expect_lemma_7(network, 2, 0.001 * trial, random);
  }
}

// Lemma 6, with its constant: two scores apart by d each in the opposite direction reach it.
TEST(Propagation, SoftmaxMovesNoMoreThanItsScores) {
  const auto moved = [](double u) {  // from (u, -u) to (-u, u) in l1
    const double p = 1 / (1 + std::exp(-2 * u));
    return 2 * std::abs(2 * p - 1);
  };
  EXPECT_LE(moved(0.01), 0.02);
  EXPECT_GT(moved(0.01), 0.0199);
  EXPECT_LE(moved(3), 6);
}

}  // namespace
}  // namespace posattn::bounds
