#include "posattn/model/attention/kernel.h"

#include <algorithm>
#include <cmath>

#include "posattn/kernels/generic/product.h"
#include "posattn/kernels/generic/rows.h"
#include "posattn/model/attention/tables.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

struct Kernel {
  static constexpr bool rows_sum_to_one = true, random = false, keeps = true, scale_free = false;

  static std::vector<TensorInfo> tensors(const ModelSpec& layer) {
    return {{.name = std::string(names::features),
             .shape = {layer.heads, layer.features, layer.key_size()},
             .initial = Initial::normal,
             .trained = false}};
  }

  // Of queries and keys alike: parts of d_k numbers become parts of m.
  template <class T>
  static void features(const ScoreParts<T>& parts, int64_t rows, T* query_key, T* kept,
                       T* features) {
    const int64_t m = parts.block->features, size = parts.block->data->key_size;
    const int64_t row = 2 * parts.heads * size, out = 2 * parts.heads * m;
    for (int64_t k = 0; k < rows * parts.heads * 2; ++k) {
      kept[k] = generic::to_norm(size, T(1), query_key + k * size);
    }
    std::vector<T> omega(size * m), one_side(rows * m);
    for (int64_t side = 0; side < 2 * parts.heads; ++side) {
      const T* stored = parts.tensor + side / 2 * m * size;
      for (int64_t f = 0; f < m; ++f) {
        for (int64_t c = 0; c < size; ++c) omega[c * m + f] = stored[f * size + c];
      }
      generic::strided_product(rows, m, size, query_key + side * size, row, 1, omega.data(), false,
                               one_side.data());
      generic::exponential(rows * m, one_side.data(), one_side.data());
      for (int64_t r = 0; r < rows; ++r) {
        const bool zero = kept[r * 2 * parts.heads + side] == 0;
        const T factor = std::exp(T(zero ? 0 : -0.5)) / std::sqrt(static_cast<T>(m));
        T* to = features + r * out + side * m;
        for (int64_t f = 0; f < m; ++f) to[f] = factor * one_side[r * m + f];
      }
    }
  }

  template <class T>
  static void features_gradient(const ScoreParts<T>& parts, int64_t rows, const T* query_key,
                                const T* kept, const T* features, T* dfeatures, T* dquery_key) {
    const int64_t m = parts.block->features, size = parts.block->data->key_size;
    const int64_t row = 2 * parts.heads * size, out = 2 * parts.heads * m;
    for (int64_t k = 0; k < rows * out; ++k) dfeatures[k] *= features[k];
    std::vector<T> dunit(rows * size);
    for (int64_t side = 0; side < 2 * parts.heads; ++side) {
      generic::strided_product(rows, size, m, dfeatures + side * m, out, 1,
                               parts.tensor + side / 2 * m * size, false, dunit.data());
      for (int64_t r = 0; r < rows; ++r) {
        T* d = dquery_key + r * row + side * size;
        std::copy_n(&dunit[r * size], size, d);
        generic::to_norm_gradient(size, T(1), kept[r * 2 * parts.heads + side],
                                  query_key + r * row + side * size, d);
      }
    }
  }

  template <class T>
  static void weights(const ScoreParts<T>& parts, const AttentionDraws&, T* attention, T* kept,
                      std::vector<T>& scratch) {
    const int64_t n = parts.keys.nodes, rows = parts.heads * n;
    make_scores(parts, false, kept, scratch);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t end = parts.keys.causal ? r % n + 1 : n;
      T *a = attention + r * n, *f = kept + r * n;
      std::fill(a + end, a + n, T(0));
      std::fill(f + end, f + n, T(1));
      if (parts.positions != nullptr) {
        const T* b = parts.positions + r * n;
        const T largest = *std::max_element(b, b + end);
        for (int64_t j = 0; j < end; ++j) a[j] = b[j] - largest;
        generic::exponential(end, a, a);
      } else {
        std::fill_n(a, end, T(1));
      }
      T sum = 0;
      for (int64_t j = 0; j < end; ++j) sum += a[j] *= f[j];
      for (int64_t j = 0; j < end; ++j) a[j] /= sum;
    }
  }

  template <class T>
  static void gradient(const ScoreParts<T>& parts, const T* attention, const T* kept, T* dattention,
                       T* dfeatures) {
    const int64_t n = parts.keys.nodes, rows = parts.heads * n;
    for (int64_t r = 0; parts.keys.causal && r < rows; ++r) {
      std::fill(dattention + r * n + r % n + 1, dattention + (r + 1) * n, T(0));
    }
    generic::softmax_rows_gradient(rows, n, attention, dattention);
    std::vector<T> dscores(rows * n);
    for (int64_t k = 0; k < rows * n; ++k) dscores[k] = dattention[k] / kept[k];
    scores_gradient(parts, dscores.data(), dfeatures);
  }
};

constexpr WeightingRow kernel() {
  WeightingRow row = weighting_row<Kernel>();
  row.unit_keys = true;
  row.tensors = Kernel::tensors;
  row.in_float.features = Kernel::features<float>;
  row.in_double.features = Kernel::features<double>;
  row.in_float.features_gradient = Kernel::features_gradient<float>;
  row.in_double.features_gradient = Kernel::features_gradient<double>;
  row.in_float.long_mixing = long_kernel;
  return row;
}

}  // namespace

constinit const WeightingRow kernel_row = kernel();

}  // namespace posattn
