// Scores from queries and keys of the data, sample by sample: S = factor Q K^T.
//   dot:        factor = 1 / sqrt(d_k)
//   unit:       factor = 1, q' = e^t q / |q|, k' = k / |k| (kernels/generic/rows.h): cosines times
//               a learned number of each head
//   direction:  the same without the number: cosines alone
//   signs:      factor = 1 / d_k, q' = e^t sign(q), k' = sign(k): the spikes of neurons of
//   threshold
//               0. With D the numbers that agree, S = e^t (2 D / d_k - 1), which is XNOR and a
//               count.
#include <cmath>

#include "posattn/kernels/generic/rows.h"
#include "posattn/model/attention/tables.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

std::vector<TensorInfo> scale_by_head(const ModelSpec& spec) {
  return {
      {.name = std::string(names::head_scale), .shape = {spec.heads}, .initial = Initial::log_4}};
}

constexpr DataRow unit() {
  DataRow row;
  row.in_float = {generic::unit_keys<float>, generic::unit_keys_gradient<float>};
  row.in_double = {generic::unit_keys<double>, generic::unit_keys_gradient<double>};
  row.changes_keys = true;
  row.factor = [](int64_t) { return 1.0; };
  row.tensors = scale_by_head;
  row.degree = 0;
  return row;
}

constexpr DataRow direction() {
  DataRow row = unit();
  row.tensors = nullptr;
  return row;
}

constexpr DataRow signs() {
  DataRow row = unit();
  row.in_float = {generic::sign_keys<float>, generic::sign_keys_gradient<float>};
  row.in_double = {generic::sign_keys<double>, generic::sign_keys_gradient<double>};
  row.keeps_each = true;
  row.factor = [](int64_t key_size) { return 1 / static_cast<double>(key_size); };
  return row;
}

constexpr DataRow dot() {
  DataRow row;
  row.factor = [](int64_t key_size) { return 1 / std::sqrt(static_cast<double>(key_size)); };
  row.degree = 2;
  return row;
}

}  // namespace

constinit const DataRow dot_row = dot(), unit_row = unit(), direction_row = direction(),
                        signs_row = signs();

}  // namespace posattn
