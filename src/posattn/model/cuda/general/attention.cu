// Attention of the general engine. It lies [sample of the chunk, head, node, node]; attention that
// does not depend on the data is a chunk of one.
#include <algorithm>

#include "posattn/model/cuda/general/rows.h"

namespace posattn::cuda {

Matrix<float> GeneralStep::attention_matrices(int64_t offset) const {
  const int64_t size = layout_.nodes * layout_.attention_stride;
  return row_major(at(offset), layout_.attention_stride, layout_.floats, spec_.heads * size, size);
}

// Reads activations [R, d] as a matrix [nodes, (sample, column of the head)] for each head.
Matrix<float> GeneralStep::head_columns(int64_t offset) const {
  const int64_t size = spec_.head_size(), width = spec_.width;
  Matrix<float> m = row_major(at(offset), layout_.samples * width, layout_.floats, 0, size);
  m.column = {1, static_cast<int32_t>(size), width};
  return m;
}

// Reads activations [R, heads head_size] as a matrix [nodes, column of the head] for each sample
// and head.
Matrix<float> GeneralStep::head_of_sample(int64_t offset, int64_t first, int32_t head_size) const {
  const int64_t width = int64_t{1} * spec_.heads * head_size;
  return row_major(at(offset) + first * width, layout_.samples * width, layout_.floats, width,
                   head_size);
}

std::vector<GeneralStep::MixedPart> GeneralStep::mixed_parts(int layer) const {
  const LayerBlock& block = plan_.layers[layer];
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const GeneralLayout::LayerGradients& d = layout_.gradients(layer);
  std::vector<MixedPart> parts;
  if (block.attention.mixes()) {
    parts.push_back({l.value.offset, l.mixed, d.value.offset, d.mixed, block.attention.head_size});
  }
  if (block.values) {
    parts.push_back(
        {l.values.value, l.values.mixed, d.values.value, d.values.mixed, block.values->head_size});
  }
  return parts;
}

// Makes a product for each sample (outer) and head (inner) of a chunk; the caller sets outer.
Product GeneralStep::mixing(int64_t rows, int64_t columns, int64_t depth) const {
  Product p;
  p.rows = static_cast<int32_t>(rows);
  p.columns = static_cast<int32_t>(columns);
  p.depth = static_cast<int32_t>(depth);
  p.inner = spec_.heads;
  return p;
}

void GeneralStep::softmax(int layer, int64_t count, Rows<const float> from) {
  const auto nodes = static_cast<int32_t>(layout_.nodes);
  enqueue_softmax(shape_.slots, count * spec_.heads * nodes, nodes, from,
                  attention_rows(layout_.layers[layer].softmax),
                  {spec_.real_nodes, attention(layer).causal ? nodes : 0}, data_.slots,
                  lane_.stream);
}

void GeneralStep::softmax_backward(int layer, int64_t count, Rows<float> dscores) {
  const auto nodes = static_cast<int32_t>(layout_.nodes);
  enqueue_softmax_gradient(shape_.slots, count * spec_.heads * nodes, nodes,
                           attention_rows(layout_.layers[layer].softmax), dscores, dscores,
                           {spec_.real_nodes, attention(layer).causal ? nodes : 0}, data_.slots,
                           lane_.stream);
}

const PositionRow& row_of(ScoreBias kind) {
  return kind == ScoreBias::direct     ? direct_row
         : kind == ScoreBias::distance ? distance_row
                                       : query_key_row;
}

bool GeneralStep::shares_alone() const {
  return std::ranges::none_of(
      plan_.layers, [](const LayerBlock& layer) { return layer.attention.data.has_value(); });
}

void GeneralStep::share(int layer) {
  const AttentionBlock& block = attention(layer);
  if (!block.positions) return;
  const Rows<float> scores = attention_rows(layout_.layers[layer].position_scores);
  row_of(block.positions->kind).scores(*this, *block.positions, layer, scores);
  if (!block.data) softmax(layer, 1, scores);
}

void GeneralStep::share_all() {
  if (!shares_alone()) {
    for (int layer = 0; layer < spec_.depth; ++layer) share(layer);
    return;
  }
  run_concurrently(concurrent_.scores, [&] {
    for (int layer = 0; layer < spec_.depth; ++layer) {
      share(layer);
      concurrent_.shared[layer].record(lane_.stream);
    }
  });
}

// From the gradient of attention, or of the scores, those of the term's tensors.
void GeneralStep::share_backward(int layer, Rows<float> dscores) {
  const AttentionBlock& block = attention(layer);
  if (!block.data) softmax_backward(layer, 1, dscores);
  row_of(block.positions->kind).gradient(*this, *block.positions, layer, dscores);
}

void GeneralStep::attend(int layer) {
  if (attention(layer).data) return attend_from_data(layer);
  if (shares_alone()) wait_for(concurrent_.shared[layer]);
  const GeneralLayout::Layer& l = layout_.layers[layer];
  if (mixes_at_once()) {
    return enqueue_mixing(mixing_shape(layer), attention_rows(l.attention), false, rows_of(l.value),
                          rows_at(l.mixed, spec_.width), shape_.precision, data_.slots,
                          lane_.stream);
  }
  Product p = mixing(layout_.nodes, layout_.samples * spec_.head_size(), layout_.nodes);
  p.a = attention_matrices(l.attention);
  p.b = head_columns(l.value.offset);
  p.c = head_columns(l.mixed);
  enqueue(p);
}

bool GeneralStep::mixes_at_once() const {
  return mixing_fits(static_cast<int32_t>(layout_.nodes), spec_.head_size());
}

MixingShape GeneralStep::mixing_shape(int layer) const {
  return {shape_.slots,
          static_cast<int32_t>(layout_.nodes),
          static_cast<int32_t>(layout_.samples),
          spec_.heads,
          spec_.head_size(),
          attention(layer).causal};
}

// The gradient of values from dmixed, for attention that all samples share.
void GeneralStep::mix_backward(int layer) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const GeneralLayout::LayerGradients& gradients = layout_.gradients(layer);
  if (mixes_at_once()) {
    return enqueue_mixing(mixing_shape(layer), attention_rows(l.attention), true,
                          rows_at(gradients.mixed, spec_.width), rows_of(gradients.value),
                          shape_.precision, data_.slots, lane_.stream);
  }
  Product dvalue = mixing(layout_.nodes, layout_.samples * spec_.head_size(), layout_.nodes);
  dvalue.a = transpose(attention_matrices(l.attention));
  dvalue.b = head_columns(gradients.mixed);
  dvalue.c = head_columns(gradients.value.offset);
  enqueue(dvalue);
}

// Makes the gradient of such attention.
void GeneralStep::shared_gradient(int layer) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const int64_t dmixed = layout_.gradients(layer).mixed;
  if (mixes_at_once()) {
    return enqueue_attention_weights_gradient(
        mixing_shape(layer), rows_of(l.value), rows_at(dmixed, spec_.width),
        attention_rows(layout_.gradients(layer).position_scores), shape_.precision, data_.slots,
        lane_.workspace, lane_.stream);
  }
  Product dattention = mixing(layout_.nodes, layout_.nodes, layout_.samples * spec_.head_size());
  dattention.a = head_columns(dmixed);
  dattention.b = transpose(head_columns(l.value.offset));
  dattention.c = attention_matrices(layout_.gradients(layer).position_scores);
  enqueue(dattention);
}

Product GeneralStep::attend_backward(int layer, Rows<float> dinput, Product end) {
  if (attention(layer).data) {
    attend_from_data_backward(layer, dinput, end);
    return added_to();
  }
  const auto make_gradient = [&] {
    shared_gradient(layer);
    share_backward(layer, attention_rows(layout_.gradients(layer).position_scores));
  };
  if (shares_alone()) {
    run_concurrently(concurrent_.scores, [&] {
      make_gradient();
      concurrent_.scores.layer[layer].record(lane_.stream);
    });
  } else {
    make_gradient();
  }
  mix_backward(layer);
  return end;
}

}  // namespace posattn::cuda
