// Nystrom attention (arXiv 2102.03902): q~, k~ are the means of m parts of the queries and the
// keys, f the factor of products.
//   B = softmax(f Q K~^T) [n, m],  G = softmax(f Q~ K~^T) [m, m],  D = softmax(f Q~ K^T) [m, n]
//   A = B Z D,  Z = NewtonInverse of G;  with m >= n nodes A = softmax(f Q K^T)
// A may have negative entries, and its rows sum to one as nearly as Z is the inverse. Gradient:
//   dB = dA (Z D)^T,  d(Z D) = B^T dA,  dZ = d(Z D) D^T,  dD = Z^T d(Z D)
// then through the softmaxes and products, and the mean of a part gives each of its nodes a share.
#include "posattn/model/attention/low_rank.h"

#include <algorithm>

#include "posattn/model/attention/tables.h"

namespace posattn {
namespace {

template <class T>
Matrix<double> in_double(const Matrix<T>& x) {
  return {x.rows, x.columns, std::vector<double>(x.numbers.begin(), x.numbers.end())};
}
template <class T>
Matrix<T> square(int64_t m, std::span<const double> numbers) {
  return {m, m, std::vector<T>(numbers.begin(), numbers.end())};
}

// One head of one sample.
template <class T>
struct LowRankHead {
  LowRankHead(const ScoreParts<T>& parts, const T* query)
      : n(parts.keys.nodes),
        m(parts.block->landmarks),
        d(parts.keys.size),
        stride(parts.keys.stride),
        factor(parts.keys.factor),
        q(without_gaps(query)),
        k(without_gaps(query + d)),
        mean_q(means(q)),
        mean_k(means(k)),
        b(softmax(q, mean_k)),
        g(softmax(mean_q, mean_k)),
        kernel(softmax(mean_q, k)),
        inverse(in_double(g)),
        z(square<T>(m, inverse.value())),
        mixed(product_of(1, z, kernel)) {}

  Matrix<T> without_gaps(const T* x) const {
    Matrix<T> result{n, d};
    for (int64_t i = 0; i < n; ++i) std::copy_n(x + i * stride, d, &result.numbers[i * d]);
    return result;
  }

  // visit(number of a landmark, that of a node, share of the node in the landmark)
  template <class Visitor>
  void for_landmarks(const Visitor& visit) const {
    for (int64_t s = 0; s < m; ++s) {
      const auto [first, end] = landmark_nodes(n, m, s);
      const T share = 1 / static_cast<T>(end - first);
      for (int64_t i = first; i < end; ++i) {
        for (int64_t c = 0; c < d; ++c) visit(s * d + c, i * d + c, share);
      }
    }
  }
  Matrix<T> means(const Matrix<T>& x) const {
    Matrix<T> result{m, d};
    for_landmarks(
        [&](int64_t to, int64_t from, T share) { result.numbers[to] += share * x.numbers[from]; });
    return result;
  }

  Matrix<T> softmax(const Matrix<T>& x, const Matrix<T>& y) const {
    Matrix<T> a = product_of(factor, x, y, Transposed::right);
    generic::softmax_rows(a.rows, a.columns, a.numbers.data());
    return a;
  }
  static void to_scores(const Matrix<T>& a, Matrix<T>& da) {
    generic::softmax_rows_gradient(a.rows, a.columns, a.numbers.data(), da.numbers.data());
  }

  void gradient(const T* dattention, T* dquery) const {
    constexpr Transposed left = Transposed::left, right = Transposed::right;
    const Matrix<T> da{n, n, std::vector<T>(dattention, dattention + n * n)};
    const Matrix<T> dmixed = product_of(1, b, da, left);
    const Matrix<T> dz = product_of(1, dmixed, kernel, right);
    Matrix<T> db = product_of(1, da, mixed, right), dkernel = product_of(1, z, dmixed, left),
              dg = square<T>(m, inverse.gradient(in_double(dz)).numbers);
    to_scores(b, db);
    to_scores(g, dg);
    to_scores(kernel, dkernel);
    Matrix<T> dq = product_of(factor, db, mean_k), dk = product_of(factor, dkernel, mean_q, left),
              dmean_q = product_of(factor, dkernel, k), dmean_k = product_of(factor, db, q, left);
    add_product(factor, dg, mean_k, dmean_q);
    add_product(factor, dg, mean_q, dmean_k, left);
    for_landmarks([&](int64_t from, int64_t to, T share) {
      dq.numbers[to] += share * dmean_q.numbers[from];
      dk.numbers[to] += share * dmean_k.numbers[from];
    });
    for (int64_t i = 0; i < n; ++i) {
      std::copy_n(&dq.numbers[i * d], d, dquery + i * stride);
      std::copy_n(&dk.numbers[i * d], d, dquery + i * stride + d);
    }
  }

  int64_t n, m, d, stride;
  double factor;
  Matrix<T> q, k, mean_q, mean_k, b, g, kernel;  // kernel: D
  NewtonInverse inverse;
  Matrix<T> z, mixed;  // mixed: Z D
};

struct LowRank {
  static constexpr bool rows_sum_to_one = false, random = false, keeps = false, scale_free = false;

  template <class T>
  static bool full(const ScoreParts<T>& parts) {
    return parts.block->landmarks >= parts.keys.nodes;
  }

  template <class T>
  static void weights(const ScoreParts<T>& parts, const AttentionDraws& draws, T* attention,
                      T* kept, std::vector<T>& scratch) {
    if (full(parts)) return softmax_row.in<T>().weights(parts, draws, attention, kept, scratch);
    for (int64_t h = 0; h < parts.heads; ++h) {
      const LowRankHead<T> head(parts, parts.query_key + h * 2 * parts.keys.size);
      attention = std::ranges::copy(product_of(1, head.b, head.mixed).numbers, attention).out;
    }
  }

  template <class T>
  static void gradient(const ScoreParts<T>& parts, const T* attention, const T* kept, T* dattention,
                       T* dquery_key) {
    if (full(parts)) {
      return softmax_row.in<T>().gradient(parts, attention, kept, dattention, dquery_key);
    }
    for (int64_t h = 0; h < parts.heads; ++h) {
      const int64_t at = h * 2 * parts.keys.size, square = parts.keys.nodes * parts.keys.nodes;
      LowRankHead<T>(parts, parts.query_key + at)
          .gradient(dattention + h * square, dquery_key + at);
    }
  }

  template <class T>
  static std::unique_ptr<NodeMemory<T>> memory(const MemoryShape<T>& shape) {
    return shape.window == 0 ? nullptr : continual_low_rank(shape);
  }
};

}  // namespace

constinit const WeightingRow low_rank_row = weighting_row<LowRank>();

}  // namespace posattn
