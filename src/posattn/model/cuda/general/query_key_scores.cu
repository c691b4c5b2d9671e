// Scores from queries and keys; and those whose source is P.
#include <cmath>

#include "posattn/model/cuda/general/rows.h"

namespace posattn::cuda {

Matrix<float> GeneralStep::query_key_heads(const KeyPlace& keys, int64_t offset, int64_t count,
                                           bool of_keys) const {
  return row_major(at(offset) + (of_keys ? keys.size : 0), count * keys.columns, layout_.floats,
                   keys.columns, 2 * keys.size);
}

void GeneralStep::rotate(Rows<float> query_key, int64_t count, float sign) {
  enqueue_rotate(shape_.slots, layout_.nodes * count, static_cast<int32_t>(count), 2 * spec_.heads,
                 memory_.rotated_size, memory_.rotation, sign, query_key, data_.slots,
                 lane_.stream);
}

// scores = factor Q K^T
void GeneralStep::query_key_scores(const KeyPlace& keys, int64_t count, int64_t scores,
                                   bool accumulate) {
  Product p = mixing(layout_.nodes, layout_.nodes, keys.size);
  p.outer = static_cast<int32_t>(count);
  p.a = query_key_heads(keys, keys.offset, count, false);
  p.b = transpose(query_key_heads(keys, keys.offset, count, true));
  p.c = attention_matrices(scores);
  p.alpha = keys.factor;
  p.accumulate = accumulate;
  enqueue(p);
}

// dQ = factor dS K, dK = factor dS^T Q
void GeneralStep::query_key_scores_backward(const KeyPlace& keys, int64_t count, int64_t dscores) {
  Product p = mixing(layout_.nodes, keys.size, layout_.nodes);
  p.outer = static_cast<int32_t>(count);
  p.alpha = keys.factor;
  const Matrix<const float> d = attention_matrices(dscores);
  for (const bool of_keys : {false, true}) {
    p.a = of_keys ? transpose(d) : d;
    p.b = query_key_heads(keys, keys.offset, count, !of_keys);
    p.c = query_key_heads(keys, keys.gradient, count, of_keys);
    enqueue(p);
  }
}

namespace {

KeyPlace position_keys(const GeneralStep& step, const PositionTerm& term, int layer) {
  const GeneralLayout::Layer& l = step.layout_.layers[layer];
  return {
      l.position_query_key, step.layout_.gradients(layer).position_query_key, l.position_columns,
      term.key_size,        1 / std::sqrt(static_cast<float>(term.key_size)), term.rope};
}

void scores(GeneralStep& step, const PositionTerm& term, int layer, Rows<float> to) {
  const KeyPlace keys = position_keys(step, term, layer);
  const Rows<float> query_key = step.rows_at(keys.offset, keys.columns);
  step.linear(step.whole(*term.query_key), step.layout_.nodes, step.positions(),
              GeneralStep::matrix(query_key));
  if (keys.rope) step.rotate(query_key, 1, 1);
  step.query_key_scores(keys, 1, to.data - step.at(0), false);
}

void gradient(GeneralStep& step, const PositionTerm& term, int layer, Rows<float> dscores) {
  const KeyPlace keys = position_keys(step, term, layer);
  const Rows<float> dquery_key = step.rows_at(keys.gradient, keys.columns);
  step.query_key_scores_backward(keys, 1, dscores.data - step.at(0));
  if (keys.rope) step.rotate(dquery_key, 1, -1);
  step.sum_samples(dquery_key, keys.columns, 1);
  step.map_positions_gradient(step.whole(*term.query_key));
}

}  // namespace

const PositionRow query_key_row{scores, gradient};

}  // namespace posattn::cuda
