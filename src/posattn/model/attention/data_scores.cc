// Scores from queries and keys of the data, sample by sample: S = factor Q K^T.
//   dot:   factor = 1 / sqrt(d_k)
//   unit:  q' = e^t q / |q|, k' = k / |k|, factor = 1: cosines times a learned number of each head.
//          dq = (e^t / |q|) (dq' - q' <dq', q'> / e^2t), dk likewise without t, dt = <dq', q'>
#include <cmath>

#include "posattn/kernels/generic/rows.h"
#include "posattn/model/attention/tables.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

template <class T>
void to_unit(int64_t rows, int heads, int64_t size, const T* log_scale, T* query_key, T* kept) {
  for (int h = 0; h < heads; ++h) {
    const T scale = std::exp(log_scale[h]);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r * heads + h;
      T* query = query_key + at * 2 * size;
      kept[2 * at] = generic::to_norm(size, scale, query);
      kept[2 * at + 1] = generic::to_norm(size, T(1), query + size);
    }
  }
}

template <class T>
void to_unit_gradient(int64_t rows, int heads, int64_t size, const T* log_scale, const T* query_key,
                      const T* kept, T* d, T* dlog_scale) {
  for (int h = 0; h < heads; ++h) {
    const T scale = std::exp(log_scale[h]);
    T sum = 0;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t at = r * heads + h, place = at * 2 * size;
      sum += generic::to_norm_gradient(size, scale, kept[2 * at], query_key + place, d + place);
      generic::to_norm_gradient(size, T(1), kept[2 * at + 1], query_key + place + size,
                                d + place + size);
    }
    dlog_scale[h] += sum;
  }
}

std::vector<TensorInfo> scale_by_head(const ModelSpec& spec) {
  return {{.name = std::string(names::head_scale),
           .shape = {spec.heads},
           .initial = Initial::log_4}};
}

constexpr DataRow unit() {
  DataRow row;
  row.in_float = {to_unit<float>, to_unit_gradient<float>};
  row.in_double = {to_unit<double>, to_unit_gradient<double>};
  row.changes_keys = true;
  row.factor = [](int64_t) { return 1.0; };
  row.tensors = scale_by_head;
  row.degree = 0;
  return row;
}

constexpr DataRow dot() {
  DataRow row;
  row.factor = [](int64_t key_size) { return 1 / std::sqrt(static_cast<double>(key_size)); };
  row.degree = 2;
  return row;
}

}  // namespace

constinit const DataRow dot_row = dot(), unit_row = unit();

}  // namespace posattn
