#include "posattn/model/tiles/data_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/tensor/buffer.h"

namespace posattn::engine {
namespace {

constexpr int64_t key_columns = 5, value_columns = 3;

// [heads][rows, columns], without padding.
struct Heads {
  int64_t rows, columns;
  std::vector<float> data;
  Heads(int heads, int64_t r, int64_t c) : rows(r), columns(c), data(heads * r * c) {}
  Headed<float> headed() { return {data.data(), columns, rows * columns}; }
  Headed<const float> read() const { return {data.data(), columns, rows * columns}; }
  double at(int h, int64_t i, int64_t c) const { return data[(h * rows + i) * columns + c]; }
};

Heads random_heads(int heads, int64_t rows, int64_t columns, RandomStream& random) {
  Heads x(heads, rows, columns);
  for (float& v : x.data) v = static_cast<float>(random.uniform()) * 2 - 1;
  return x;
}

// One head of one sample in double: y, dq, dk and dv.
struct Expected {
  std::vector<double> y, dq, dk, dv;
};
Expected plain_loops(int nodes, int h, int64_t first, const Heads& q, const Heads& k,
                     const Heads& v, const Heads& dy) {
  const int64_t n = nodes;
  Expected e{std::vector<double>(n * value_columns), std::vector<double>(n * key_columns),
             std::vector<double>(n * key_columns), std::vector<double>(n * value_columns)};
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double> a(n), da(n);
    double sum = 0, dot = 0;
    for (int64_t j = 0; j < n; ++j) {
      double score = 0;
      for (int64_t c = 0; c < key_columns; ++c)
        score += q.at(h, first + i, c) * k.at(h, first + j, c);
      sum += a[j] = std::exp(score);
    }
    for (int64_t j = 0; j < n; ++j) {
      a[j] /= sum;
      for (int64_t c = 0; c < value_columns; ++c) {
        e.y[i * value_columns + c] += a[j] * v.at(h, first + j, c);
        e.dv[j * value_columns + c] += a[j] * dy.at(h, first + i, c);
        da[j] += dy.at(h, first + i, c) * v.at(h, first + j, c);
      }
      dot += a[j] * da[j];
    }
    for (int64_t j = 0; j < n; ++j) {
      const double ds = a[j] * (da[j] - dot);
      for (int64_t c = 0; c < key_columns; ++c) {
        e.dq[i * key_columns + c] += ds * k.at(h, first + j, c);
        e.dk[j * key_columns + c] += ds * q.at(h, first + i, c);
      }
    }
  }
  return e;
}

double largest_difference(const Heads& ours, int h, int64_t first,
                          const std::vector<double>& expected) {
  double worst = 0;
  const auto columns = ours.columns;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / columns, column = static_cast<int64_t>(i) % columns;
    worst = std::max(worst, std::abs(ours.at(h, first + row, column) - expected[i]));
  }
  return worst;
}

// Matrices that are kept, for few nodes at once, for many in blocks of rows; and, where all heads
// together would take too much memory, rows that are computed again.
TEST(DataAttention, AgreesWithPlainLoopsWhateverIsKept) {
  struct Case {
    int nodes, heads;
    bool kept;
  };
  for (const auto& [nodes, heads, kept] : {Case{9, 2, true}, {150, 2, true}, {150, 100, false}}) {
    SCOPED_TRACE(::testing::Message() << nodes << " nodes, " << heads << " heads");
    constexpr int samples = 2;
    DataAttention attention(nodes, heads, key_columns, value_columns);
    const bool all = attention.kept_size(1) >= int64_t{1} * heads * nodes * nodes;
    EXPECT_EQ(all, kept);
    RandomStream random(43, Purpose::test_data, 0, 0);
    const int64_t rows = int64_t{samples} * nodes;
    const Heads q = random_heads(heads, rows, key_columns, random);
    const Heads k = random_heads(heads, rows, key_columns, random);
    const Heads v = random_heads(heads, rows, value_columns, random);
    const Heads dy = random_heads(heads, rows, value_columns, random);
    Heads y(heads, rows, value_columns), dq(heads, rows, key_columns), dk(heads, rows, key_columns),
        dv(heads, rows, value_columns);
    Buffer<float> tape(attention.kept_size(samples)), scratch(attention.scratch_size());
    attention.forward(samples, q.read(), k.read(), v.read(), y.headed(), tape.data(),
                      scratch.data());
    attention.backward(samples, q.read(), k.read(), v.read(), y.read(), dy.read(), dq.headed(),
                       dk.headed(), dv.headed(), tape.data(), scratch.data());
    for (int s = 0; s < samples; ++s) {
      for (const int h : {0, heads - 1}) {
        const Expected e = plain_loops(nodes, h, s * nodes, q, k, v, dy);
        EXPECT_LT(largest_difference(y, h, s * nodes, e.y), 1e-5);
        EXPECT_LT(largest_difference(dq, h, s * nodes, e.dq), 1e-5);
        EXPECT_LT(largest_difference(dk, h, s * nodes, e.dk), 1e-5);
        EXPECT_LT(largest_difference(dv, h, s * nodes, e.dv), 1e-5);
      }
    }
  }
}

}  // namespace
}  // namespace posattn::engine
