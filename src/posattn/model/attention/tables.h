// How the rows of attention are made, each in a file of its own, and which there are.
#pragma once

#include "posattn/model/attention/rows.h"

namespace posattn {

// From a struct with tensors(spec, beside_data), scores<T> and gradient<T>.
template <class Row>
constexpr PositionRow position_row(bool maps_positions) {
  PositionRow row;
  row.in_float = {Row::template scores<float>, Row::template gradient<float>};
  row.in_double = {Row::template scores<double>, Row::template gradient<double>};
  row.tensors = Row::tensors;
  row.maps_positions = maps_positions;
  if constexpr (requires { &Row::template by_distance<float>; }) {
    row.in_float.by_distance = Row::template by_distance<float>;
    row.in_double.by_distance = Row::template by_distance<double>;
  }
  return row;
}

// From a struct with weights<T>, gradient<T> and, where it has its own, mix<T> with
// mix_gradient<T>, row_weights<T> and memory<T>.
template <class Row, class T>
constexpr WeightingFunctions<T> weighting_functions() {
  WeightingFunctions<T> functions;
  functions.weights = Row::template weights<T>;
  functions.gradient = Row::template gradient<T>;
  if constexpr (requires { &Row::template mix<T>; }) {
    functions.mix = Row::template mix<T>;
    functions.mix_gradient = Row::template mix_gradient<T>;
  }
  if constexpr (requires { &Row::template row_weights<T>; }) {
    functions.row_weights = Row::template row_weights<T>;
  }
  if constexpr (requires { &Row::template memory<T>; }) functions.memory = Row::template memory<T>;
  return functions;
}
template <class Row>
constexpr WeightingRow weighting_row() {
  WeightingRow row;
  row.in_float = weighting_functions<Row, float>();
  row.in_double = weighting_functions<Row, double>();
  row.rows_sum_to_one = Row::rows_sum_to_one;
  row.random = Row::random;
  row.keeps = Row::keeps;
  row.scale_free = Row::scale_free;
  return row;
}

extern const PositionRow query_key_row, direct_row, distance_row, gray_row, log_row, alibi_row,
    kerple_row, fire_row, buckets_row, window_row, pairs_row;
extern const DataRow dot_row, unit_row, direction_row, signs_row, tropical_row, agreements_row;
extern const WeightingRow softmax_row, hard_row, relu_row, relu_rows_row, sums_row, max_plus_row,
    kernel_row, linear_row, low_rank_row;

}  // namespace posattn
