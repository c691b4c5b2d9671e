// One step of the general engine: the plan carried out for all slots at once. The formulas and
// their order are those of model/blocks/block_network.cc and block_layer.h.
#pragma once

#include <utility>

#include "posattn/kernels/cuda/attention.h"
#include "posattn/kernels/cuda/elementwise_rows.h"
#include "posattn/kernels/cuda/norms.h"
#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/shared_attention.h"
#include "posattn/model/cuda/general/concurrent_streams.h"
#include "posattn/model/cuda/general/layout.h"
#include "posattn/model/plan.h"

namespace posattn::cuda {

// Memory of an engine that a step works in.
struct GeneralMemory {
  float* activations = nullptr;        // [slots, GeneralLayout::floats]
  float* product_workspace = nullptr;  // [slots, product_workspace]
  double* errors = nullptr;            // [slots, nodes]
  int32_t* label_counts = nullptr;     // [slots, nodes]
  const float* positions = nullptr;    // P by formula [nodes, encoding_size]
  const float* rotation = nullptr;     // RoPE's table [nodes, rotated_size]
  int32_t rotated_size = 0;
};

// A linear map's place among the parameters: y = x W^T + b, W [out, in]. `in` may be a part of W's
// columns: of [data | P], either. Two maps of the same x are one whose rows lie in two groups.
struct LinearPart {
  int64_t weight = 0;
  TensorId bias = no_tensor;
  Axis rows, bias_rows;  // of W and b
  int32_t in = 0, out = 0;
};

// Queries and keys of `count` samples, [node, sample, head, query | key]; scores are factor Q K^T.
struct KeyPlace {
  int64_t offset = 0, gradient = 0, columns = 0;
  int32_t size = 0;
  float factor = 1;
  bool rope = false;
};

class GeneralStep {
 public:
  GeneralStep(const FleetShape& shape, const Plan& plan, const GeneralLayout& layout,
              const GeneralMemory& memory, ConcurrentStreams& concurrent, const StepData& data,
              const float* parameters, float* gradients, cudaStream_t stream);

  void run(double* losses);
  void forward();  // alone; gradients may be null

  // What the rows of attention (general/rows.h) are written with.
  enum class Bias { parameter, node_table };

  // general/step.cu
  struct Lane {  // where work is enqueued, and memory of its own
    cudaStream_t stream;
    float* workspace;
    int64_t node_sums;  // weights need none
  };
  template <class Work>
  void run_concurrently(ConcurrentStream& other,
                        const Work& work);  // what work() enqueues goes there
  void wait_for(const Event& event);
  void wait_for_concurrent(int layer);  // for their work of a layer
  void loss(double* losses);
  void backward();

  // general/input.cu: x of the first layer; and gradients from dx, which is written over.
  void encode();
  void encode_backward(Rows<float> dx);
  bool tokens_have_no_values() const;
  void clear_embedded(Rows<float> rows, int32_t columns);
  // Of a model wrapped by scale, f(x) = r g(x / r): x / r, and an output or its gradient times r.
  PartShape input_parts() const;
  void divide_inputs();
  void multiply_outputs();

  // general/layer.cu
  void forward_layer(int layer);
  void backward_layer(int layer);
  void forward_mlp(int layer);
  // din = the gradient by the input, with this epilogue.
  void backward_mlp(int layer, Rows<float> dout, Rows<float> din, const Product& end);
  void normalise(const NormalisationBlock& block, View x, View y);
  // dy becomes dx.
  void normalise_backward(const NormalisationBlock& block, View x, Rows<float> dy);
  void add(Rows<const float> x, Rows<float> y);  // y += x, [R, d]

  // general/value_stream.cu: v' of a layer from what attention mixed and from the symbols z'; and
  // from dv' the gradient of what was mixed, dv where gates make it, and dz', which is added to
  // that of the MLP if there is one.
  void forward_values(int layer);
  void backward_values(int layer);
  void gate_backward(const LinearBlock& gate, int layer, int64_t dgates, bool accumulate);
  Rows<float> mix_gate_rows(int64_t gates, int which) const;
  // unit = v / r, r the root mean square of the sample's values, 0 where v = 0; back, dv = or +=.
  void divide_by_size(View v, View unit, int64_t inverse);
  void divide_by_size_gradient(View unit, int64_t inverse, View dunit, View dv, bool accumulate);

  // general/attention.cu: mixed = concat_h A_h V_h of a layer; and from dmixed the gradients of
  // values, of the attention's parameters, and of what attention read: `end` is the epilogue of the
  // first product that writes dinput. That of the next one.
  void attend(int layer);
  // Scores of positions of all layers, and attention where they are all; concurrently where no
  // layer's attention depends on the data.
  void share_all();
  void share(int layer);
  void share_backward(int layer, Rows<float> dscores);
  bool shares_alone() const;
  Product attend_backward(int layer, Rows<float> dinput, Product end);
  void softmax(int layer, int64_t count, Rows<const float> scores);
  void softmax_backward(int layer, int64_t count, Rows<float> dscores);
  void mix_backward(int layer);
  void shared_gradient(int layer);
  bool mixes_at_once() const;
  MixingShape mixing_shape(int layer) const;
  Product mixing(int64_t rows, int64_t columns, int64_t depth) const;
  Rows<float> attention_rows(int64_t offset) const {
    return rows_at(offset, layout_.attention_stride);
  }
  // What one attention mixes: values of x, or the stream of values; and their gradients.
  struct MixedPart {
    int64_t value, mixed, dvalue, dmixed;
    int32_t head_size;
  };
  std::vector<MixedPart> mixed_parts(int layer) const;
  KeyPlace data_keys(int layer) const;
  Matrix<float> attention_matrices(int64_t offset) const;
  Matrix<float> head_columns(int64_t offset) const;  // of all samples, for one shared attention
  Matrix<float> head_of_sample(int64_t offset, int64_t first, int32_t head_size) const;

  // general/data_scores.cu
  void attend_from_data(int layer);
  void attend_from_data_backward(int layer, Rows<float> dinput, const Product& end);
  void attend_chunk(int layer, int64_t first, int64_t count);
  void attend_chunk_backward(int layer, Rows<float> dsource, const Product& end, int64_t first,
                             int64_t count);
  Matrix<const float> source_rows(int layer, int64_t first, int64_t count) const;
  PartShape parts(int32_t width, bool by_sample) const;
  PartShape scaled_parts(int layer) const;

  // general/fused_attention.cu
  AttentionShape fused_shape(int layer) const;
  LinearPart source_map(const DataTerm& term, int layer) const;
  void attend_fused(int layer);
  void attend_fused_backward(int layer, Rows<float> dinput, const Product& end);

  // general/query_key_scores.cu: scores = or += of queries and keys, which are rotated; and back.
  void query_key_scores(const KeyPlace& keys, int64_t count, int64_t scores, bool accumulate);
  void query_key_scores_backward(const KeyPlace& keys, int64_t count, int64_t dscores);
  void rotate(Rows<float> query_key, int64_t count, float sign);
  Matrix<float> query_key_heads(const KeyPlace& keys, int64_t offset, int64_t count,
                                bool of_keys) const;

  // general/dense.cu
  LinearPart part(const LinearBlock& map, int64_t first_column, int64_t in) const;
  LinearPart whole(const LinearBlock& map) const { return part(map, 0, map.in); }
  // `end` is a product with nothing but an epilogue.
  void linear(const LinearPart& map, int64_t rows, Matrix<const float> x, Matrix<float> y,
              Bias bias = Bias::parameter, Product end = {});
  // dW = or += dy^T x
  Product weight_gradient(const LinearPart& map, int64_t rows, Matrix<const float> x,
                          Matrix<const float> dy, bool accumulate = false) const;
  // dx = or += dy W
  void input_gradient(const LinearPart& map, int64_t rows, Matrix<const float> dy, Matrix<float> dx,
                      Product end = {});
  // Makes the gradients dW and db of all rows, concurrently, and dx.
  void linear_gradient(const LinearPart& map, Matrix<const float> x, Rows<float> dy, Rows<float> dx,
                       Product end = {});
  static Product added_to() {  // an epilogue: C +=
    Product end;
    end.accumulate = true;
    return end;
  }
  static Product plus(Rows<const float> x) {  // an epilogue: C = ... + x
    Product end;
    end.added = x;
    return end;
  }
  // node_sums = or += sums over samples of dy [nodes, count, columns].
  void sum_samples(Rows<float> dy, int64_t columns, int64_t count, bool accumulate = false);
  void vector_gradient(TensorId vector);  // from node_sums; of a bias, a shift or a gain
  // node_table = P W^T + b; and from node_sums the gradients of W, b and a learned P.
  void map_positions(const LinearPart& map);
  void map_positions_gradient(const LinearPart& map);
  Matrix<const float> positions() const;
  Rows<const float> inputs() const {  // as the network reads them
    if (spec_.wrap == Wrap::scale) return rows_of(layout_.inputs);
    return {data_.inputs, layout_.rows * spec_.data_columns, spec_.data_columns};
  }
  bool positions_are_learned() const;
  void enqueue(Product product);

  const TensorInfo& info(TensorId id) const { return plan_.tensors.all()[id]; }
  const float* parameter(TensorId id) const { return parameters_ + info(id).offset; }
  float* gradient(TensorId id) const { return gradients_ + info(id).offset; }
  int64_t parameter_stride() const { return plan_.tensors.buffer_size(); }

  const AttentionBlock& attention(int layer) const { return plan_.layers[layer].attention; }
  float* at(int64_t offset) const { return memory_.activations + offset; }
  Rows<float> rows_at(int64_t offset, int64_t stride) const {
    return {at(offset), layout_.floats, stride};
  }
  Rows<float> rows_of(View view) const { return rows_at(view.offset, view.stride); }
  template <class T>
  static Matrix<T> matrix(Rows<T> rows) {
    return row_major(rows.data, rows.stride, rows.slot_stride);
  }
  Matrix<float> matrix_at(int64_t offset, int64_t stride) const {
    return matrix(rows_at(offset, stride));
  }
  Matrix<float> matrix_of(View view) const { return matrix(rows_of(view)); }

  const FleetShape& shape_;
  const ModelSpec& spec_;  // sizes; what is done with them is the plan's
  const Plan& plan_;
  const GeneralLayout& layout_;
  const GeneralMemory& memory_;
  ConcurrentStreams& concurrent_;
  const StepData& data_;
  const float* parameters_;
  float* gradients_;
  Lane lane_;
  bool positions_have_gradient_ = false;  // of this step: the next one is added
};

template <class Work>
void GeneralStep::run_concurrently(ConcurrentStream& other, const Work& work) {
  other.begin.record(lane_.stream);
  const Lane before =
      std::exchange(lane_, {other.stream.get(), other.workspace.data(), layout_.node_sums[1]});
  wait_for(other.begin);
  work();
  lane_ = before;
}

}  // namespace posattn::cuda
