// What is kept of a stream against the same attention over whole windows, in double and in float.
#include "posattn/model/attention/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "posattn/base/random.h"
#include "posattn/model/attention/low_rank.h"

namespace posattn {
namespace {

using Doubles = std::vector<double>;

constexpr int64_t heads = 2, key_size = 5, head_size = 3;

// Queries, keys and values of nodes, as floats that double holds exactly.
struct Stream {
  Stream(int64_t nodes, float size, uint64_t seed) {
    RandomStream random(seed, Purpose::test_data, 0, 0);
    for (int64_t i = 0; i < nodes * heads * 2 * key_size; ++i) {
      query_key.push_back(random.uniform(-size, size));
    }
    for (int64_t i = 0; i < nodes * heads * head_size; ++i) {
      values.push_back(random.uniform(-1, 1));
    }
  }
  std::vector<float> query_key, values;

  const float* query(int64_t node, int64_t head) const {
    return &query_key[(node * heads + head) * 2 * key_size];
  }
  const float* key(int64_t node, int64_t head) const { return query(node, head) + key_size; }
  const float* value(int64_t node, int64_t head) const {
    return &values[(node * heads + head) * head_size];
  }
};

template <class T>
MemoryShape<T> memory_shape_of(int64_t window, int64_t landmarks) {
  return {.heads = heads,
          .key_size = key_size,
          .head_size = head_size,
          .factor = T(0.5),
          .window = window,
          .landmarks = landmarks};
}

// Answers of all nodes, read one by one: [nodes, heads, head_size].
template <class T>
std::vector<T> answers_of(Weighting weighting, const MemoryShape<T>& shape, const Stream& stream) {
  const auto memory = make_memory(weighting, shape);
  const std::vector<T> query_key(stream.query_key.begin(), stream.query_key.end()),
      values(stream.values.begin(), stream.values.end());
  std::vector<T> mixed(values.size());
  const int64_t width = heads * head_size, keys = heads * 2 * key_size;
  for (int64_t i = 0; i < static_cast<int64_t>(values.size()) / width; ++i) {
    memory->read({1, &query_key[i * keys], &values[i * width], &mixed[i * width]});
  }
  return mixed;
}

double dot_of(const Doubles& x, const Doubles& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

Doubles numbers_of(const float* x, int64_t count) { return {x, x + count}; }

Doubles softmax_of(Doubles scores) {
  const double largest = *std::ranges::max_element(scores);
  double sum = 0;
  for (double& s : scores) sum += s = std::exp(s - largest);
  for (double& s : scores) s /= sum;
  return scores;
}

Doubles mean_of_nodes(const Stream& stream, int64_t head, bool keys, int64_t first, int64_t end) {
  Doubles mean(key_size);
  for (int64_t i = first; i < end; ++i) {
    const float* x = keys ? stream.key(i, head) : stream.query(i, head);
    for (int64_t c = 0; c < key_size; ++c) mean[c] += x[c] / static_cast<double>(end - first);
  }
  return mean;
}

// o of the last of `read` nodes by its definition: o = softmax(f q K~^T) Z softmax(f Q~ K^T) V over
// the last n nodes, with the landmarks of the last m whole parts of the stream.
Doubles low_rank_answer(const Stream& stream, int64_t head, int64_t read, int64_t n, int64_t m) {
  const int64_t part = n / m, last_part = read / part;
  std::vector<Doubles> queries, keys;
  for (int64_t s = last_part - m; s < last_part; ++s) {
    queries.push_back(mean_of_nodes(stream, head, false, s * part, (s + 1) * part));
    keys.push_back(mean_of_nodes(stream, head, true, s * part, (s + 1) * part));
  }
  const auto row = [&](const Doubles& q) {
    Doubles scores;
    for (const Doubles& k : keys) scores.push_back(0.5 * dot_of(q, k));
    return softmax_of(scores);
  };
  Doubles g, o(head_size);
  for (const Doubles& q : queries) std::ranges::copy(row(q), std::back_inserter(g));
  const Doubles b = row(numbers_of(stream.query(read - 1, head), key_size));
  const NewtonInverse inverse({m, m, g});
  const std::span<const double> z = inverse.value();
  for (int64_t a = 0; a < m; ++a) {
    Doubles scores;
    for (int64_t j = read - n; j < read; ++j) {
      scores.push_back(0.5 * dot_of(queries[a], numbers_of(stream.key(j, head), key_size)));
    }
    const Doubles d = softmax_of(scores);
    double weight = 0;
    for (int64_t s = 0; s < m; ++s) weight += b[s] * z[s * m + a];
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t c = 0; c < head_size; ++c) {
        o[c] += weight * d[j] * stream.value(read - n + j, head)[c];
      }
    }
  }
  return o;
}

double largest_error_of_continual(const Stream& stream, int64_t n, int64_t m,
                                  const Doubles& answers) {
  double error = 0, largest = 0;
  const int64_t width = heads * head_size;
  for (int64_t read = n; read * width <= static_cast<int64_t>(answers.size()); ++read) {
    for (int64_t h = 0; h < heads; ++h) {
      const Doubles expected = low_rank_answer(stream, h, read, n, m);
      for (int64_t c = 0; c < head_size; ++c) {
        const double found = answers[(read - 1) * width + h * head_size + c];
        error = std::max(error, std::abs(found - expected[c]));
        largest = std::max(largest, std::abs(expected[c]));
      }
    }
  }
  return error / largest;
}

TEST(ContinualLowRank, AStepIsTheWholeWindowAgain) {
  for (const auto& [n, m] : {std::pair{24, 4}, {12, 6}, {8, 1}}) {
    const Stream stream(3000, 1.5f, 7);
    const Doubles answers = answers_of(Weighting::low_rank, memory_shape_of<double>(n, m), stream);
    EXPECT_LT(largest_error_of_continual(stream, n, m, answers), 1e-13) << n << ", " << m;
  }
}

// Without a largest score, exp would overflow in float; with one that stays, what is left of a sum
// when its largest term goes would be rounding.
TEST(ContinualLowRank, LargeScoresComeAndGo) {
  Stream stream(2000, 1.0f, 9);
  for (int64_t node = 40; node < 2000; node += 37) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t c = 0; c < key_size; ++c) {
        stream.query_key[((node * heads + h) * 2 + 1) * key_size + c] *= 60;
      }
    }
  }
  const Doubles answers = answers_of(Weighting::low_rank, memory_shape_of<double>(20, 4), stream);
  EXPECT_LT(largest_error_of_continual(stream, 20, 4, answers), 1e-12);
  const auto floats = answers_of(Weighting::low_rank, memory_shape_of<float>(20, 4), stream);
  for (const float y : floats) ASSERT_TRUE(std::isfinite(y));
}

TEST(ContinualLowRank, FloatDoesNotDrift) {
  const Stream stream(10000, 1.5f, 8);
  const Doubles exact = answers_of(Weighting::low_rank, memory_shape_of<double>(64, 8), stream);
  const auto floats = answers_of(Weighting::low_rank, memory_shape_of<float>(64, 8), stream);
  const auto error_among = [&](size_t first, size_t end) {
    double error = 0;
    for (size_t i = first; i < end; ++i) error = std::max(error, std::abs(floats[i] - exact[i]));
    return error;
  };
  const size_t tenth = exact.size() / 10;
  EXPECT_LT(error_among(0, exact.size()), 1e-5);
  EXPECT_LT(error_among(9 * tenth, exact.size()), 5 * error_among(0, tenth));
}

// Softmax and linear attention over the last nodes, or all of them.
TEST(NodeMemory, KeepsWhatOneRowOfAttentionNeeds) {
  const Stream stream(60, 1.5f, 3);
  for (const int64_t window : {0, 1, 7}) {
    for (const Weighting weighting : {Weighting::softmax, Weighting::linear}) {
      if (weighting == Weighting::linear && window > 0) continue;
      const Doubles answers = answers_of(weighting, memory_shape_of<double>(window, 0), stream);
      for (int64_t i = 0; i < 60; ++i) {
        for (int64_t h = 0; h < heads; ++h) {
          const int64_t first = window == 0 ? 0 : std::max<int64_t>(0, i + 1 - window);
          Doubles weights, expected(head_size);
          for (int64_t j = first; j <= i; ++j) {
            const Doubles q = numbers_of(stream.query(i, h), key_size),
                          k = numbers_of(stream.key(j, h), key_size);
            double sum = 0;
            for (int64_t c = 0; c < key_size; ++c) {
              const auto feature = [](double x) { return x > 0 ? x + 1 : std::exp(x); };
              sum += feature(q[c]) * feature(k[c]);
            }
            weights.push_back(weighting == Weighting::linear ? std::log(sum) : 0.5 * dot_of(q, k));
          }
          weights = softmax_of(weights);
          for (int64_t j = first; j <= i; ++j) {
            for (int64_t c = 0; c < head_size; ++c) {
              expected[c] += weights[j - first] * stream.value(j, h)[c];
            }
          }
          for (int64_t c = 0; c < head_size; ++c) {
            EXPECT_NEAR(answers[(i * heads + h) * head_size + c], expected[c], 1e-14);
          }
        }
      }
    }
  }
}

TEST(NodeMemory, SumsDoNotForget) {
  EXPECT_TRUE(make_memory(Weighting::linear, memory_shape_of<float>(8, 0)) == nullptr);
  EXPECT_TRUE(make_memory(Weighting::low_rank, memory_shape_of<float>(0, 4)) == nullptr);
}

Doubles random_kernel(int64_t m, RandomStream& random) {
  Doubles g;
  for (int64_t i = 0; i < m; ++i) {
    Doubles row;
    for (int64_t j = 0; j < m; ++j) row.push_back(random.uniform(-2, 2) + (i == j ? 6 : 0));
    std::ranges::copy(softmax_of(row), std::back_inserter(g));
  }
  return g;
}

TEST(NewtonInverse, IsNearlyTheInverse) {
  RandomStream random(5, Purpose::test_data, 0, 0);
  for (const int64_t m : {1, 2, 5, 8}) {
    const Doubles g = random_kernel(m, random);
    const NewtonInverse inverse({m, m, g});
    const std::span<const double> z = inverse.value();
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < m; ++j) {
        double entry = 0;
        for (int64_t k = 0; k < m; ++k) entry += g[i * m + k] * z[k * m + j];
        EXPECT_NEAR(entry, i == j ? 1 : 0, 1e-3);
      }
    }
  }
}

TEST(NewtonInverse, GradientIsTheDerivative) {
  RandomStream random(6, Purpose::test_data, 0, 0);
  for (const int64_t m : {1, 3, 6}) {
    const Doubles g = random_kernel(m, random);
    Doubles dz(m * m);
    for (double& d : dz) d = random.uniform(-1, 1);
    const Doubles dg = NewtonInverse({m, m, g}).gradient({m, m, dz}).numbers;
    for (int64_t i = 0; i < m * m; ++i) {
      double along[2];
      for (int side = 0; side < 2; ++side) {
        Doubles near = g;
        near[i] += side == 0 ? -1e-6 : 1e-6;
        const NewtonInverse inverse({m, m, near});
        along[side] = dot_of({inverse.value().begin(), inverse.value().end()}, dz);
      }
      EXPECT_NEAR(dg[i], (along[1] - along[0]) / 2e-6, 1e-6 * (1 + std::abs(dg[i])));
    }
  }
}

}  // namespace
}  // namespace posattn
