// Continual low-rank attention (arXiv 2412.03214): the newest of a window of n nodes attends to all
// of them through m landmarks. A landmark is a mean of n / m nodes, and every n / m nodes a new one
// takes the place of the oldest; until then the landmarks stay. Kept, by head and landmark a:
//   e_aj = exp(f q~_a . k_j - c_a),  s_a = sum_j e_aj,  r_a = sum_j e_aj v_j  over the window
// A new node replaces one term of the sums, and its answer is
//   o = softmax(f q K~^T) Z (r_a / s_a)_a
// c_a is the largest score when the sums were made. They are made anew where a term would be much
// larger, or where the one that leaves was most of the sum: what is left would be rounding. While
// the window fills, or where m does not divide n, all landmarks are made anew for each node.
#include <algorithm>
#include <cmath>

#include "posattn/model/attention/low_rank.h"

namespace posattn {
namespace {

template <class T>
class ContinualHead {
 public:
  explicit ContinualHead(const MemoryShape<T>& shape)
      : n_(shape.window),
        m_(shape.landmarks),
        size_(shape.key_size),
        columns_(shape.head_size),
        factor_(shape.factor),
        queries_(n_ * size_),
        keys_(n_ * size_),
        values_(n_ * columns_),
        mean_queries_(m_ * size_),
        mean_keys_(m_ * size_),
        terms_(n_ * m_),
        stale_(m_),
        largest_(m_),
        sums_(m_),
        weighted_(m_ * columns_) {}

  void read(const T* q, const T* k, const T* v, T* o) {
    const int64_t slot = read_ % n_;
    const bool anew = read_ < n_ || n_ % m_ != 0;
    if (!anew) remove_terms(slot);
    std::copy_n(q, size_, &queries_[slot * size_]);
    std::copy_n(k, size_, &keys_[slot * size_]);
    std::copy_n(v, columns_, &values_[slot * columns_]);
    ++read_;
    const int64_t nodes = std::min(read_, n_);
    if (nodes <= m_) return answer_exactly(q, nodes, o);
    if (anew) {
      for (int64_t a = 0; a < m_; ++a) {
        const auto [first, end] = landmark_nodes(nodes, m_, a);
        make_landmark(a, read_ - nodes + first, read_ - nodes + end);
      }
      make_inverse();
    } else {
      add_terms(slot);
      const int64_t size = n_ / m_;
      if (read_ % size == 0) {
        make_landmark((read_ / size - 1) % m_, read_ - size, read_);  // in the oldest one's place
        make_inverse();
      }
    }
    answer(q, o);
  }

 private:
  T score(const T* x, const T* y) const {
    T sum = 0;
    for (int64_t c = 0; c < size_; ++c) sum += x[c] * y[c];
    return factor_ * sum;
  }

  void add_to_sums(int64_t a, T e, const T* v) {
    sums_[a] += e;
    for (int64_t c = 0; c < columns_; ++c) weighted_[a * columns_ + c] += e * v[c];
  }

  void remove_terms(int64_t slot) {
    for (int64_t a = 0; a < m_; ++a) {
      const T e = terms_[slot * m_ + a];
      stale_[a] = 2 * e > sums_[a];
      add_to_sums(a, -e, &values_[slot * columns_]);
    }
  }

  void add_terms(int64_t slot) {
    constexpr T far = 30;
    for (int64_t a = 0; a < m_; ++a) {
      const T s = score(&mean_queries_[a * size_], &keys_[slot * size_]) - largest_[a];
      if (stale_[a] || s > far) {
        make_sums(a);
      } else {
        add_to_sums(a, terms_[slot * m_ + a] = std::exp(s), &values_[slot * columns_]);
      }
    }
  }

  // Of landmark a over the window.
  void make_sums(int64_t a) {
    const int64_t nodes = std::min(read_, n_);
    std::vector<T> scores(nodes);
    for (int64_t j = 0; j < nodes; ++j) {
      scores[j] = score(&mean_queries_[a * size_], &keys_[j * size_]);
    }
    largest_[a] = *std::ranges::max_element(scores);
    sums_[a] = 0;
    std::fill_n(&weighted_[a * columns_], columns_, T(0));
    for (int64_t j = 0; j < nodes; ++j) {
      const T e = terms_[j * m_ + a] = std::exp(scores[j] - largest_[a]);
      add_to_sums(a, e, &values_[j * columns_]);
    }
  }

  // The mean of the nodes at these places of the stream.
  void make_landmark(int64_t a, int64_t first, int64_t end) {
    for (const auto& [from, to] : {std::pair{&queries_, &mean_queries_}, {&keys_, &mean_keys_}}) {
      T* mean = &(*to)[a * size_];
      std::fill_n(mean, size_, T(0));
      for (int64_t j = first; j < end; ++j) {
        for (int64_t c = 0; c < size_; ++c) mean[c] += (*from)[j % n_ * size_ + c];
      }
      for (int64_t c = 0; c < size_; ++c) mean[c] /= static_cast<T>(end - first);
    }
    make_sums(a);
  }

  void make_inverse() {
    Matrix<double> kernel{m_, m_};
    for (int64_t a = 0; a < m_; ++a) {
      std::ranges::copy(weights(&mean_queries_[a * size_], m_, mean_keys_),
                        &kernel.numbers[a * m_]);
    }
    const NewtonInverse inverse(std::move(kernel));
    inverse_.assign(inverse.value().begin(), inverse.value().end());
  }

  std::vector<T> weights(const T* q, int64_t count, const std::vector<T>& keys) const {
    std::vector<T> weights(count);
    for (int64_t a = 0; a < count; ++a) weights[a] = score(q, &keys[a * size_]);
    generic::softmax_rows(1, count, weights.data());
    return weights;
  }

  void answer(const T* q, T* o) const {
    const std::vector<T> b = weights(q, m_, mean_keys_);
    std::fill_n(o, columns_, T(0));
    for (int64_t a = 0; a < m_; ++a) {
      double bz = 0;
      for (int64_t s = 0; s < m_; ++s) bz += b[s] * inverse_[s * m_ + a];
      const T weight = static_cast<T>(bz) / sums_[a];
      for (int64_t c = 0; c < columns_; ++c) o[c] += weight * weighted_[a * columns_ + c];
    }
  }

  void answer_exactly(const T* q, int64_t nodes, T* o) const {
    const std::vector<T> a = weights(q, nodes, keys_);
    std::fill_n(o, columns_, T(0));
    for (int64_t j = 0; j < nodes; ++j) {
      for (int64_t c = 0; c < columns_; ++c) o[c] += a[j] * values_[j * columns_ + c];
    }
  }

  int64_t n_, m_, size_, columns_, read_ = 0;
  T factor_;
  std::vector<T> queries_, keys_, values_;    // [n, ...], node j of the stream at j mod n
  std::vector<T> mean_queries_, mean_keys_;   // [m, d_k]
  std::vector<T> terms_;                      // e, [n, m]
  std::vector<bool> stale_;                   // [m], sums to be made anew
  std::vector<T> largest_, sums_, weighted_;  // c, s [m] and r [m, d_v]
  std::vector<double> inverse_;               // Z
};

template <class T>
class ContinualLowRank final : public NodeMemory<T> {
 public:
  explicit ContinualLowRank(const MemoryShape<T>& shape)
      : size_(shape.key_size),
        columns_(shape.head_size),
        heads_(shape.heads, ContinualHead<T>(shape)) {}

  void read(const NewNodes<T>& nodes) override {
    const auto heads = static_cast<int64_t>(heads_.size());
    for (int64_t i = 0; i < nodes.count * heads; ++i) {
      const T* q = nodes.query_key + i * 2 * size_;
      heads_[i % heads].read(q, q + size_, nodes.values + i * columns_, nodes.mixed + i * columns_);
    }
  }

 private:
  int64_t size_, columns_;
  std::vector<ContinualHead<T>> heads_;
};

}  // namespace

template <class T>
std::unique_ptr<NodeMemory<T>> continual_low_rank(const MemoryShape<T>& shape) {
  return std::make_unique<ContinualLowRank<T>>(shape);
}

template std::unique_ptr<NodeMemory<float>> continual_low_rank(const MemoryShape<float>&);
template std::unique_ptr<NodeMemory<double>> continual_low_rank(const MemoryShape<double>&);

}  // namespace posattn
