// One step of the general engine: what is computed where, for all slots at once. The formulas and
// their order are those of model/reference_network.cc.
#pragma once

#include "posattn/kernels/cuda/elementwise_rows.h"
#include "posattn/kernels/cuda/product.h"
#include "posattn/model/cuda/general/layout.h"
#include "posattn/model/parameters.h"

namespace posattn::cuda {

// Memory of an engine that a step works in.
struct GeneralMemory {
  float* activations = nullptr;        // [slots, GeneralLayout::floats]
  float* product_workspace = nullptr;  // [slots, product_workspace]
  double* errors = nullptr;            // [slots, nodes]
  const float* positions = nullptr;    // P by formula [nodes, encoding_size]
  const float* rotation = nullptr;     // RoPE's table [nodes, d_k]
};

// A linear map's place among the parameters: y = x W^T + b, W [out, in] with rows row_stride apart.
// `in` may be a part of W's columns: of [data | P], either.
struct LinearPart {
  int64_t weight = 0, bias = 0, row_stride = 0;
  int32_t in = 0, out = 0;
};

class GeneralStep {
 public:
  GeneralStep(const FleetShape& shape, const ParameterLayout& parameter_layout,
              const GeneralLayout& layout, const GeneralMemory& memory, const StepData& data,
              const float* parameters, float* gradients, cudaStream_t stream);

  void run(double* losses);

 private:
  enum class Bias { none, parameter, node_table };

  // general/step.cu
  void forward();
  void forward_layer(int layer);
  void squared_error(double* losses);
  void backward();
  void backward_layer(int layer);

  // general/attention.cu: mixed = concat_h A_h V_h of a layer; and from dmixed the gradients of
  // values (dvalue), of the attention's parameters, and of x (added to dx).
  void attend(int layer);
  void attend_backward(int layer, Rows<float> dx);
  void attend_from_positions(int layer);
  void attend_from_positions_backward(int layer);
  void attend_from_data(int layer, int64_t first, int64_t count);
  void attend_from_data_backward(int layer, Rows<float> dx, int64_t first, int64_t count);
  void scores(int layer, int64_t count);
  void scores_backward(int layer, int64_t count);
  void softmax(int layer, int64_t count, Rows<const float> scores);
  void softmax_backward(int layer, int64_t count, Rows<float> dscores);
  void rotate(int64_t offset, int64_t count, float sign);
  Product mixing(int64_t rows, int64_t columns, int64_t depth) const;
  Matrix<float> attention_matrices(int64_t offset) const;
  Matrix<float> head_columns(int64_t offset) const;  // of all samples, for one shared attention
  Matrix<float> head_of_sample(int64_t offset, int64_t first) const;
  Matrix<float> query_key_heads(int64_t offset, int64_t count, bool keys) const;
  Matrix<const float> layer_input(int layer, int64_t first, int64_t count) const;

  // general/dense.cu
  LinearPart part(std::string_view name, int64_t first_column, int64_t in) const;
  LinearPart whole(std::string_view name) const;
  void linear(const LinearPart& map, int64_t rows, Matrix<const float> x, Matrix<float> y,
              Bias bias, bool relu = false);
  // dW = or += dy^T x
  void weight_gradient(const LinearPart& map, int64_t rows, Matrix<const float> x,
                       Matrix<const float> dy, bool accumulate = false);
  // dx = or += dy W
  void input_gradient(const LinearPart& map, int64_t rows, Matrix<const float> dy, Matrix<float> dx,
                      bool accumulate = false);
  // node_sums = or += sums over samples of dy [nodes, count, columns], which becomes zero first
  // where `activation` is not positive.
  void sum_samples(Rows<float> dy, int64_t columns, int64_t count,
                   const float* activation = nullptr, bool accumulate = false);
  void bias_gradient(const LinearPart& map);  // from node_sums
  // node_table = P W^T + b; and from node_sums the gradients of W, b and a learned P.
  void map_positions(const LinearPart& map);
  void map_positions_gradient(const LinearPart& map);
  Matrix<const float> positions() const;
  void enqueue(Product product);

  float* at(int64_t offset) const { return memory_.activations + offset; }
  Rows<float> rows_at(int64_t offset, int64_t stride) const {
    return {at(offset), layout_.floats, stride};
  }
  static Matrix<float> matrix(Rows<float> rows) {
    return row_major(rows.data, rows.stride, rows.slot_stride);
  }
  Matrix<float> matrix_at(int64_t offset, int64_t stride) const {
    return matrix(rows_at(offset, stride));
  }

  const FleetShape& shape_;
  const ModelSpec& spec_;
  const ParameterLayout& parameter_layout_;
  const GeneralLayout& layout_;
  const GeneralMemory& memory_;
  const StepData& data_;
  const float* parameters_;
  float* gradients_;
  cudaStream_t stream_;
  bool positions_have_gradient_ = false;  // of this step: the next one is added
};

}  // namespace posattn::cuda
