#include <cmath>

#include "posattn/kernels/cuda/lanes.cuh"
#include "posattn/model/cuda/medium/positional_attention.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn::cuda::medium {
namespace {

constexpr int warps = 8;  // of a block
constexpr int column_threads = 32, node_threads = 8;

// Every slot and layer has a matrix [heads * nodes, nodes].
template <class T>
struct Scores {
  T* data = nullptr;
  int64_t slot = 0, layer = 0;
};

// Nodes steps[slot].real_nodes .. absent_end - 1 are absent.
struct ScoreShape {
  int layers, heads, nodes, absent_end;
};

// A warp's row: which one, and what is present in it. Whole warps are surplus, and return.
struct ScoreRow {
  __device__ ScoreRow(const ScoreShape& shape, const SlotStep* steps)
      : slot(blockIdx.y), first_absent(steps[slot].real_nodes), absent_end(shape.absent_end) {
    const int rows = shape.heads * shape.nodes, index = blockIdx.x * warps + threadIdx.y;
    surplus = index >= shape.layers * rows;
    layer = index / rows;
    offset = int64_t{1} * (index % rows) * shape.nodes;
  }
  template <class T>
  __device__ T* of(const Scores<T>& scores) const {
    return scores.data + slot * scores.slot + layer * scores.layer + offset;
  }
  // Whether a column is present.
  __device__ bool operator()(int column) const {
    return column < first_absent || column >= absent_end;
  }
  int slot, layer, first_absent, absent_end;
  int64_t offset;
  bool surplus;
};

// to = softmax over the present columns, zero in absent ones; in place when `to` is `from`.
__global__ void softmax_kernel(ScoreShape shape, const SlotStep* steps,
                               Scores<const float> from_scores, Scores<float> to_scores) {
  if (steps[blockIdx.y].samples == 0) return;
  const ScoreRow row(shape, steps);
  if (row.surplus) return;
  softmax_row<32>(row.of(from_scores), row.of(to_scores), shape.nodes, threadIdx.x, row);
}

// to = A (dA - <A, dA>) per row.
__global__ void softmax_gradient_kernel(ScoreShape shape, const SlotStep* steps,
                                        Scores<const float> attention,
                                        Scores<const float> dattention, Scores<float> to) {
  if (steps[blockIdx.y].samples == 0) return;
  const ScoreRow row(shape, steps);
  if (row.surplus) return;
  softmax_gradient_row<32>(row.of(attention), row.of(dattention), row.of(to), shape.nodes,
                           threadIdx.x, row);
}

// Queries and keys are [slots, layers, nodes, columns], their biases [layers, columns].
struct QueryKeyShape {
  int layers, nodes, columns;
  int64_t bias_slot, bias_layer;  // strides
};

// Which column of a layer a thread has.
struct QueryKeyColumn {
  __device__ explicit QueryKeyColumn(const QueryKeyShape& shape)
      : index(blockIdx.x * column_threads + threadIdx.x),
        layer(index / shape.columns),
        column(index % shape.columns),
        inside(layer < shape.layers) {}
  __device__ int64_t place(const QueryKeyShape& shape, int node) const {
    return ((int64_t{1} * blockIdx.y * shape.layers + layer) * shape.nodes + node) * shape.columns +
           column;
  }
  __device__ int64_t bias(const QueryKeyShape& shape) const {
    return blockIdx.y * shape.bias_slot + layer * shape.bias_layer + column;
  }
  int index, layer, column;
  bool inside;
};

// Adds the biases. The threads of a block are (columns, nodes).
__global__ void add_query_biases_kernel(QueryKeyShape shape, const SlotStep* steps,
                                        const float* biases, float* query_key) {
  if (steps[blockIdx.y].samples == 0) return;
  const QueryKeyColumn at(shape);
  if (!at.inside) return;
  const float bias = biases[at.bias(shape)];
  for (int node = threadIdx.y; node < shape.nodes; node += node_threads) {
    query_key[at.place(shape, node)] += bias;
  }
}

// The gradient of a bias is the sum over nodes.
__global__ void sum_query_biases_kernel(QueryKeyShape shape, const SlotStep* steps,
                                        const float* dquery_key, float* dbiases) {
  __shared__ float sums[node_threads][column_threads];
  if (steps[blockIdx.y].samples == 0) return;
  const QueryKeyColumn at(shape);
  float sum = 0;
  for (int node = threadIdx.y; at.inside && node < shape.nodes; node += node_threads) {
    sum += dquery_key[at.place(shape, node)];
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y > 0 || !at.inside) return;
  for (int other = 1; other < node_threads; ++other) sum += sums[other][threadIdx.x];
  dbiases[at.bias(shape)] = sum;
}

ScoreShape score_shape(const FoldedTensors& t) { return {t.depth, t.heads, t.nodes, t.real_nodes}; }
dim3 row_blocks(const ScoreShape& shape, int slots) {
  const int64_t rows = int64_t{1} * shape.layers * shape.heads * shape.nodes;
  return dim3(static_cast<unsigned>(ceil_div(rows, warps)), slots);
}
QueryKeyShape query_key_shape(const FoldedTensors& t) {
  return {t.depth, t.nodes, 2 * t.heads * t.encoding_size, t.parameter_stride, t.layer_stride};
}
dim3 column_blocks(const QueryKeyShape& shape, int slots) {
  const int64_t columns = int64_t{1} * shape.layers * shape.columns;
  return dim3(static_cast<unsigned>(ceil_div(columns, column_threads)), slots);
}

int64_t query_key_floats(const FleetShape& shape) {
  const ModelSpec& spec = shape.spec;
  if (!spec.has_query_key()) return 0;
  return int64_t{2} * shape.slots * spec.depth * spec.nodes() * spec.heads * spec.key_size();
}
int64_t score_floats(const FleetShape& shape) {
  const ModelSpec& spec = shape.spec;
  if (spec.scores == posattn::Scores::direct) return 0;
  return int64_t{1} * shape.slots * spec.depth * spec.heads * spec.nodes() * spec.nodes();
}

}  // namespace

PositionalAttention::PositionalAttention(const FleetShape& shape, const FoldedLayout& layout,
                                         const float* positions)
    : t_(shape.spec, layout),
      slots_(shape.slots),
      learned_(shape.spec.encoding == Encoding::learned && shape.spec.has_query_key()),
      relative_(shape.spec.scores == posattn::Scores::distance),
      relative_shape_{shape.spec.real_nodes, shape.spec.scratch_nodes, shape.spec.reach},
      scale_(1 / std::sqrt(static_cast<float>(shape.spec.key_size()))),
      attention_layer_(t_.later_places.attention - t_.first_places.attention),
      positions_(positions),
      query_key_(query_key_floats(shape)),
      dquery_key_(query_key_floats(shape)),
      dscores_(score_floats(shape)) {
  if (!relative_) return;
  const ParameterLayout parameters(shape.spec);
  const auto offset = [&](std::string_view name) {
    return parameters.at(names::of_layer(0, name)).offset;
  };
  distances_ = offset(names::relative_scores);
  if (shape.spec.scratch_nodes > 0) scratch_ = offset(names::scratch_scores);
}

int64_t PositionalAttention::bytes(const FleetShape& shape) {
  return (2 * query_key_floats(shape) + score_floats(shape)) * static_cast<int64_t>(sizeof(float));
}

Matrix<float> PositionalAttention::query_key_heads(float* base, bool keys) const {
  const int64_t columns = query_key_columns(), size = t_.encoding_size;
  const int64_t layer = t_.nodes * columns;
  return row_major(base + (keys ? size : 0), columns, t_.depth * layer, layer, 2 * size);
}

Matrix<const float> PositionalAttention::positions(const FoldingStep& step) const {
  if (t_.stored_positions < 0) return row_major(positions_, t_.encoding_size);
  return row_major(step.parameters + t_.stored_positions, t_.encoding_size, t_.parameter_stride);
}

// In fp32 whatever the engine's precision: operands are weights, and it is done once a step.
void PositionalAttention::multiply(Product product, const FoldingStep& step) const {
  product.slots = slots_;
  product.outer = t_.depth;
  enqueue_product(product, Precision::fp32, step.slots, step.workspace, step.stream);
}

void PositionalAttention::enqueue(const FoldingStep& step) {
  const Scores<float> attention{step.folded + t_.first_places.attention, t_.folded_size,
                                attention_layer_};
  Scores<const float> scores{attention.data, attention.slot, attention.layer};
  if (t_.direct_attention) {
    scores = {step.parameters + t_.direct_scores, t_.parameter_stride, t_.layer_stride};
  } else if (relative_) {
    relative_scores(step);
  } else {
    Product map;  // P [Wq; Wk]^T
    map.rows = t_.nodes;
    map.columns = static_cast<int32_t>(query_key_columns());
    map.depth = t_.encoding_size;
    map.a = positions(step);
    map.b = transpose(row_major(step.parameters + t_.query_key.weight, t_.encoding_size,
                                t_.parameter_stride, t_.layer_stride));
    map.c = query_key_heads(query_key_.data(), false);
    multiply(map, step);
    const QueryKeyShape shape = query_key_shape(t_);
    launch(add_query_biases_kernel, column_blocks(shape, slots_),
           dim3(column_threads, node_threads), 0, step.stream, shape, step.slots,
           step.parameters + t_.query_key.bias, query_key_.data());
    Product product;  // Q K^T / sqrt(d_k)
    product.rows = product.columns = t_.nodes;
    product.depth = t_.encoding_size;
    product.inner = t_.heads;
    product.a = query_key_heads(query_key_.data(), false);
    product.b = transpose(query_key_heads(query_key_.data(), true));
    product.c = row_major(attention.data, t_.nodes, attention.slot, attention.layer,
                          int64_t{1} * t_.nodes * t_.nodes);
    product.alpha = scale_;
    multiply(product, step);
  }
  const ScoreShape shape = score_shape(t_);
  launch(softmax_kernel, row_blocks(shape, slots_), dim3(32, warps), 0, step.stream, shape,
         step.slots, scores, attention);
}

void PositionalAttention::enqueue_gradient(const FoldingStep& step) {
  const int64_t matrix = int64_t{1} * t_.nodes * t_.nodes, layer = t_.heads * matrix;
  const Scores<float> dscores =
      t_.direct_attention
          ? Scores<float>{step.gradients + t_.direct_scores, t_.parameter_stride, t_.layer_stride}
          : Scores<float>{dscores_.data(), t_.depth * layer, layer};
  const ScoreShape shape = score_shape(t_);
  const int64_t place = t_.first_places.attention;
  launch(softmax_gradient_kernel, row_blocks(shape, slots_), dim3(32, warps), 0, step.stream, shape,
         step.slots, Scores<const float>{step.folded + place, t_.folded_size, attention_layer_},
         Scores<const float>{step.folded_gradients + place, t_.folded_size, attention_layer_},
         dscores);
  if (t_.direct_attention) return;
  if (relative_) return relative_scores_gradient(step);

  Product product;  // dQ = dS K / sqrt(d_k), dK = dS^T Q / sqrt(d_k)
  product.rows = product.depth = t_.nodes;
  product.columns = t_.encoding_size;
  product.inner = t_.heads;
  product.alpha = scale_;
  const Matrix<const float> ds =
      row_major(dscores.data, t_.nodes, dscores.slot, dscores.layer, matrix);
  for (const bool keys : {false, true}) {
    product.a = keys ? transpose(ds) : ds;
    product.b = query_key_heads(query_key_.data(), !keys);
    product.c = query_key_heads(dquery_key_.data(), keys);
    multiply(product, step);
  }
  const QueryKeyShape query_key = query_key_shape(t_);
  launch(sum_query_biases_kernel, column_blocks(query_key, slots_),
         dim3(column_threads, node_threads), 0, step.stream, query_key, step.slots,
         dquery_key_.data(), step.gradients + t_.query_key.bias);
  Product dweight;  // [dQ | dK]^T P
  dweight.rows = static_cast<int32_t>(query_key_columns());
  dweight.columns = t_.encoding_size;
  dweight.depth = t_.nodes;
  dweight.a = transpose(query_key_heads(dquery_key_.data(), false));
  dweight.b = positions(step);
  dweight.c = row_major(step.gradients + t_.query_key.weight, t_.encoding_size, t_.parameter_stride,
                        t_.layer_stride);
  multiply(dweight, step);
  if (learned_) learned_positions_gradient(step);
}

template <class T>
RelativeTables<T> PositionalAttention::relative_tables(T* base, int layer) const {
  T* of_layer = base + layer * t_.layer_stride;
  return {of_layer + distances_, scratch_ < 0 ? nullptr : of_layer + scratch_, t_.parameter_stride};
}

void PositionalAttention::relative_scores(const FoldingStep& step) {
  for (int l = 0; l < t_.depth; ++l) {
    const Rows<float> scores = {step.folded + t_.first_places.attention + l * attention_layer_,
                                t_.folded_size, t_.nodes};
    enqueue_relative_scores(slots_, t_.heads, relative_shape_, relative_tables(step.parameters, l),
                            scores, step.slots, step.stream);
  }
}

void PositionalAttention::relative_scores_gradient(const FoldingStep& step) {
  const int64_t layer = int64_t{1} * t_.heads * t_.nodes * t_.nodes;
  for (int l = 0; l < t_.depth; ++l) {
    const Rows<float> dscores = {dscores_.data() + l * layer, t_.depth * layer, t_.nodes};
    enqueue_relative_scores_gradient(slots_, t_.heads, relative_shape_, dscores,
                                     relative_tables(step.gradients, l), step.slots, step.stream);
  }
}

// dP = the sum over layers of [dQ | dK] [Wq; Wk]: one product, whose inner index is (layer,
// column).
void PositionalAttention::learned_positions_gradient(const FoldingStep& step) {
  const int64_t columns = query_key_columns();
  const auto group = static_cast<int32_t>(columns);
  Product product;
  product.slots = slots_;
  product.rows = t_.nodes;
  product.columns = t_.encoding_size;
  product.depth = t_.depth * group;
  product.a = query_key_heads(dquery_key_.data(), false);
  product.a.column = {1, group, t_.nodes * columns};
  product.b =
      row_major(step.parameters + t_.query_key.weight, t_.encoding_size, t_.parameter_stride);
  product.b.row = {t_.encoding_size, group, t_.layer_stride};
  product.c =
      row_major(step.gradients + t_.stored_positions, t_.encoding_size, t_.parameter_stride);
  enqueue_product(product, Precision::fp32, step.slots, step.workspace, step.stream);
}

}  // namespace posattn::cuda::medium
