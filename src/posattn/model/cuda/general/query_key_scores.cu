// Scores from queries and keys, which lie [node, sample of the chunk, head, query | key]; and those
// whose source is P.
#include <cmath>

#include "posattn/model/cuda/general/step.h"

namespace posattn::cuda {

Matrix<float> GeneralStep::query_key_heads(int64_t offset, int64_t count, bool keys) const {
  const int64_t columns = layout_.query_key_columns, size = spec_.key_size();
  return row_major(at(offset) + (keys ? size : 0), count * columns, layout_.floats, columns,
                   2 * size);
}

void GeneralStep::rotate(Rows<float> query_key, int64_t count, float sign) {
  enqueue_rotate(shape_.slots, layout_.nodes * count, static_cast<int32_t>(count), 2 * spec_.heads,
                 spec_.key_size(), memory_.rotation, sign, query_key, data_.slots, lane_.stream);
}

// Rotates queries and keys, then attention = softmax(Q K^T / sqrt(d_k)).
void GeneralStep::scores(int layer, int64_t count, bool rope) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  if (rope) rotate(rows_at(l.query_key, layout_.query_key_columns), count, 1);
  Product p = mixing(layout_.nodes, layout_.nodes, spec_.key_size());
  p.outer = static_cast<int32_t>(count);
  p.a = query_key_heads(l.query_key, count, false);
  p.b = transpose(query_key_heads(l.query_key, count, true));
  p.c = attention_matrices(l.attention);
  p.alpha = 1 / std::sqrt(static_cast<float>(spec_.key_size()));
  enqueue(p);
  softmax(layer, count, attention_rows(l.attention));
}

// From dattention the gradient of queries and keys: dQ = dS K / sqrt(d_k), dK = dS^T Q / sqrt(d_k).
void GeneralStep::scores_backward(int layer, int64_t count, bool rope) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const int64_t dquery_key = layout_.gradients(layer).query_key;
  softmax_backward(layer, count, attention_rows(layout_.dattention));
  Product p = mixing(layout_.nodes, spec_.key_size(), layout_.nodes);
  p.outer = static_cast<int32_t>(count);
  p.alpha = 1 / std::sqrt(static_cast<float>(spec_.key_size()));
  const Matrix<const float> dscores = attention_matrices(layout_.dattention);
  for (const bool keys : {false, true}) {
    p.a = keys ? transpose(dscores) : dscores;
    p.b = query_key_heads(l.query_key, count, !keys);
    p.c = query_key_heads(dquery_key, count, keys);
    enqueue(p);
  }
  if (rope) rotate(rows_at(dquery_key, layout_.query_key_columns), count, -1);
}

void GeneralStep::share(const PositionScores& kind, int layer) {
  linear(whole(kind.query_key), layout_.nodes, positions(),
         matrix_at(layout_.layers[layer].query_key, layout_.query_key_columns));
  scores(layer, 1, kind.rope);
}

void GeneralStep::share_backward(const PositionScores& kind, int layer) {
  const LinearPart map = whole(kind.query_key);
  scores_backward(layer, 1, kind.rope);
  sum_samples(rows_at(layout_.gradients(layer).query_key, map.out), map.out, 1);
  map_positions_gradient(map);
}

}  // namespace posattn::cuda
