#include <algorithm>
#include <iterator>

#include "posattn/kernels/cuda/adam.cuh"
#include "posattn/kernels/cuda/elementwise_rows.h"
#include "posattn/kernels/cuda/host_operands_test.h"
#include "posattn/kernels/cuda/operations_test.h"
#include "posattn/kernels/cuda/product.h"

namespace posattn::cuda {
namespace {

void multiply(Product p, Precision precision) {
  DeviceBuffer<float> workspace(product_workspace);
  enqueue_product(p, precision, nullptr, workspace.data(), nullptr);
}

// ---- linear: y = x W^T + b, sizes rows, in, out; with or without ReLU
void linear(Precision precision, const Sizes& s, const Operands<float>& in, bool relu,
            Buffer<float>& output) {
  const auto x = to_device(in[0]), weight = to_device(in[1]), bias = to_device(in[2]);
  DeviceBuffer<float> y(s[0] * s[2]);
  Product p;
  p.rows = static_cast<int32_t>(s[0]);
  p.depth = static_cast<int32_t>(s[1]);
  p.columns = static_cast<int32_t>(s[2]);
  p.a = row_major(x.data(), s[1]);
  p.b = transpose(row_major(weight.data(), s[1]));
  p.c = row_major(y.data(), s[2]);
  p.bias = bias.data();
  if (relu) p.curve = Curve::relu;
  multiply(p, precision);
  to_host(y, output);
}
// dx = dy W; dW = dy^T x and with it db = column sums of dy, which is zero where a ReLU was: that
// is the end of the product that makes dy.
void linear_gradient(Precision precision, const Sizes& s, const Operands<float>& in,
                     const Buffer<float>* relu_output, const Buffer<float>& doutput,
                     Operands<float>& dinputs) {
  const auto x = to_device(in[0]), weight = to_device(in[1]);
  Buffer<float> masked(doutput.begin(), doutput.end());
  for (size_t i = 0; relu_output && i < masked.size(); ++i) {
    if ((*relu_output)[i] <= 0) masked[i] = 0;
  }
  const auto dy = to_device(masked);
  DeviceBuffer<float> dx(s[0] * s[1]), dweight(s[2] * s[1]), dbias(s[2]);
  const auto rows = static_cast<int32_t>(s[0]), inner = static_cast<int32_t>(s[1]),
             columns = static_cast<int32_t>(s[2]);
  Product p;
  p.rows = rows;
  p.depth = columns;
  p.columns = inner;
  p.a = row_major(dy.data(), s[2]);
  p.b = row_major(weight.data(), s[1]);
  p.c = row_major(dx.data(), s[1]);
  multiply(p, precision);
  p.rows = columns;
  p.depth = rows;
  p.a = transpose(row_major(dy.data(), s[2]));
  p.b = row_major(x.data(), s[1]);
  p.c = row_major(dweight.data(), s[1]);
  p.row_sums = dbias.data();
  multiply(p, precision);
  to_host(dx, dinputs[0]);
  to_host(dweight, dinputs[1]);
  to_host(dbias, dinputs[2]);
}

// ---- mix: y_s = A x_s, sizes samples, nodes, width; all samples are columns of one product
template <class T>
Matrix<T> samples_of(const Sizes& s, T* data) {
  Matrix<T> matrix = row_major(data, s[2]);
  matrix.column = {1, static_cast<int32_t>(s[2]), s[1] * s[2]};
  return matrix;
}

void mix(Precision precision, const Sizes& s, const Operands<float>& in, Buffer<float>& output) {
  const auto attention = to_device(in[0]), x = to_device(in[1]);
  DeviceBuffer<float> y(x.size());
  Product p;
  p.rows = p.depth = static_cast<int32_t>(s[1]);
  p.columns = static_cast<int32_t>(s[0] * s[2]);
  p.a = row_major(attention.data(), s[1]);
  p.b = samples_of(s, x.data());
  p.c = samples_of(s, y.data());
  multiply(p, precision);
  to_host(y, output);
}
void mix_gradient(Precision precision, const Sizes& s, const Operands<float>& in,
                  const Buffer<float>&, const Buffer<float>& doutput, Operands<float>& dinputs) {
  const auto attention = to_device(in[0]), x = to_device(in[1]), dy = to_device(doutput);
  DeviceBuffer<float> dattention(attention.size()), dx(x.size());
  Product p;
  p.rows = p.columns = static_cast<int32_t>(s[1]);
  p.depth = static_cast<int32_t>(s[0] * s[2]);
  p.a = samples_of(s, dy.data());
  p.b = transpose(samples_of(s, x.data()));
  p.c = row_major(dattention.data(), s[1]);
  multiply(p, precision);
  std::swap(p.columns, p.depth);
  p.a = transpose(row_major(attention.data(), s[1]));
  p.b = samples_of(s, dy.data());
  p.c = samples_of(s, dx.data());
  multiply(p, precision);
  to_host(dattention, dinputs[0]);
  to_host(dx, dinputs[1]);
}

// ---- softmax of rows; sizes rows, columns
void softmax(Precision, const Sizes& s, const Operands<float>& in, Buffer<float>& output) {
  auto x = to_device(in[0]);
  enqueue_softmax(1, s[0], static_cast<int32_t>(s[1]), {x.data(), 0, s[1]}, {x.data(), 0, s[1]}, {},
                  nullptr, nullptr);
  to_host(x, output);
}
void softmax_gradient(Precision, const Sizes& s, const Operands<float>&,
                      const Buffer<float>& output, const Buffer<float>& doutput,
                      Operands<float>& dinputs) {
  const auto y = to_device(output);
  auto dx = to_device(doutput);
  enqueue_softmax_gradient(1, s[0], static_cast<int32_t>(s[1]), {y.data(), 0, s[1]},
                           {dx.data(), 0, s[1]}, {dx.data(), 0, s[1]}, {}, nullptr, nullptr);
  to_host(dx, dinputs[0]);
}

// ---- sum of parts; sizes parts, count
void sum_parts(Precision, const Sizes& s, const Operands<float>& in, Buffer<float>& output) {
  const auto x = to_device(in[0]);
  DeviceBuffer<float> sum(s[1]);
  enqueue_sum_parts(1, static_cast<int32_t>(s[0]), s[1], {x.data(), 0, s[1]}, sum.data(), 0, false,
                    nullptr, nullptr);
  to_host(sum, output);
}

// ---- one Adam step, with the numbers and the squared second moment of the table's row
__global__ void adam_kernel(int64_t size, AdamNumbers<float> numbers, const float* gradient,
                            float* first, float* second, float* weights) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < size) step_adam(numbers, gradient[i], first[i], second[i], weights[i]);
}
void adam(Precision, const Sizes& s, const Operands<float>& in, Buffer<float>& output) {
  Buffer<float> squared(s[0]);
  std::transform(in[2].begin(), in[2].end(), squared.begin(), [](float x) { return x * x; });
  const AdamNumbers<float> numbers = {0.01f,  0.999f, 0.9f,  0.1f,  0.999f,
                                      0.001f, 0.5f,   1e-8f, 0.002f};
  const auto gradient = to_device(in[0]);
  auto first = to_device(in[1]), second = to_device(squared), weights = to_device(in[3]);
  constexpr int threads = 256;
  launch(adam_kernel, dim3(static_cast<unsigned>(ceil_div(s[0], threads))), dim3(threads), 0,
         nullptr, s[0], numbers, gradient.data(), first.data(), second.data(), weights.data());
  first.download(output.data(), s[0]);
  second.download(output.data() + s[0], s[0]);
  weights.download(output.data() + 2 * s[0], s[0]);
}

std::vector<CudaOperation> make_operations() {
  std::vector<CudaOperation> table = {
      {"linear",
       [](Precision precision, const Sizes& s, const Operands<float>& in, Buffer<float>& y) {
         linear(precision, s, in, false, y);
       },
       [](Precision precision, const Sizes& s, const Operands<float>& in, const Buffer<float>&,
          const Buffer<float>& dy,
          Operands<float>& d) { linear_gradient(precision, s, in, nullptr, dy, d); }},
      {"linear-relu",
       [](Precision precision, const Sizes& s, const Operands<float>& in, Buffer<float>& y) {
         linear(precision, s, in, true, y);
       },
       [](Precision precision, const Sizes& s, const Operands<float>& in, const Buffer<float>& y,
          const Buffer<float>& dy,
          Operands<float>& d) { linear_gradient(precision, s, in, &y, dy, d); }},
      {"mix", mix, mix_gradient},
      {"softmax", softmax, softmax_gradient},
      {"sum-parts", sum_parts, nullptr},
      {"adam", adam, nullptr},
  };
  std::ranges::move(plain_cuda_operations(), std::back_inserter(table));
  return table;
}

}  // namespace

const std::vector<CudaOperation>& cuda_operations() {
  static const std::vector<CudaOperation> table = make_operations();
  return table;
}

}  // namespace posattn::cuda
