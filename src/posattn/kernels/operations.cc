#include "posattn/kernels/operations.h"

#include <algorithm>
#include <cmath>

#include "posattn/kernels/plain/table.h"
#include "posattn/kernels/reference/operations.h"

namespace posattn {
namespace {

int64_t between(RandomStream& random, int low, int high) {
  return low + random.below(static_cast<uint32_t>(high - low + 1));
}
// Sizes around the vector lengths are the interesting ones.
Sizes three_random(RandomStream& random) {
  return {between(random, 1, 40), between(random, 1, 40), between(random, 1, 70)};
}
// Now and then whole panels and an inner dimension that is cut.
Sizes linear_random(RandomStream& random) {
  if (random.below(4) != 0) return three_random(random);
  return {between(random, 90, 220), between(random, 60, 140), between(random, 60, 140)};
}
Sizes two_random(RandomStream& random) { return {between(random, 1, 40), between(random, 1, 70)}; }

// ---- linear: y = x W^T + b; sizes rows, in, out
// --------------------------------------------------
std::vector<int64_t> linear_inputs(const Sizes& s) { return {s[0] * s[1], s[2] * s[1], s[2]}; }
int64_t linear_output(const Sizes& s) { return s[0] * s[2]; }
double linear_work(const Sizes& s) { return static_cast<double>(s[0] * s[1] * s[2]); }

void linear_reference(const Sizes& s, const Operands<double>& in, Buffer<double>& y) {
  reference::linear(s[0], s[1], s[2], in[0].data(), in[1].data(), in[2].data(), y.data());
}
void linear_reference_gradient(const Sizes& s, const Operands<double>& in, const Buffer<double>&,
                               const Buffer<double>& dy, Operands<double>& d) {
  for (auto& part : d) std::fill(part.begin(), part.end(), 0.0);
  reference::linear_gradient(s[0], s[1], s[2], in[0].data(), in[1].data(), dy.data(), d[0].data(),
                             d[1].data(), d[2].data());
}
void linear_store(const TileKernels& k, const Sizes& s, const Operands<float>& in, Store store,
                  Buffer<float>& y) {
  Buffer<float> transposed(s[1] * s[2]);
  k.transpose(s[2], s[1], in[1].data(), s[1], transposed.data(), s[2]);
  k.product(s[0], s[2], s[1], in[0].data(), s[1], 1, transposed.data(), s[2], y.data(), s[2], store,
            in[2].data());
}
void linear_cpu(const TileKernels& k, const Sizes& s, const Operands<float>& in, Buffer<float>& y) {
  linear_store(k, s, in, Store::bias, y);
}
// dx = dy W; dW = dy^T x; db = column sums (of dy, already masked for the ReLU).
void linear_products(const TileKernels& k, const Sizes& s, const Operands<float>& in,
                     const Buffer<float>& dy, Operands<float>& d) {
  k.product(s[0], s[1], s[2], dy.data(), s[2], 1, in[1].data(), s[1], d[0].data(), s[1],
            Store::assign, nullptr);
  std::fill(d[1].begin(), d[1].end(), 0.0f);
  k.product(s[2], s[1], s[0], dy.data(), 1, s[2], in[0].data(), s[1], d[1].data(), s[1], Store::add,
            nullptr);
}
void linear_cpu_gradient(const TileKernels& k, const Sizes& s, const Operands<float>& in,
                         const Buffer<float>&, const Buffer<float>& dy, Operands<float>& d) {
  linear_products(k, s, in, dy, d);
  std::fill(d[2].begin(), d[2].end(), 0.0f);
  k.column_sums(s[0], s[2], dy.data(), s[2], d[2].data());
}

// ---- linear + ReLU
// -------------------------------------------------------------------------------
void relu_reference(const Sizes& s, const Operands<double>& in, Buffer<double>& y) {
  linear_reference(s, in, y);
  reference::relu(static_cast<int64_t>(y.size()), y.data());
}
void relu_reference_gradient(const Sizes& s, const Operands<double>& in, const Buffer<double>& y,
                             const Buffer<double>& dy, Operands<double>& d) {
  Buffer<double> masked = dy;
  reference::relu_gradient(static_cast<int64_t>(y.size()), y.data(), masked.data());
  linear_reference_gradient(s, in, y, masked, d);
}
void relu_cpu(const TileKernels& k, const Sizes& s, const Operands<float>& in, Buffer<float>& y) {
  linear_store(k, s, in, Store::bias_relu, y);
}
void relu_cpu_gradient(const TileKernels& k, const Sizes& s, const Operands<float>& in,
                       const Buffer<float>& y, const Buffer<float>& dy, Operands<float>& d) {
  Buffer<float> masked = dy;
  std::fill(d[2].begin(), d[2].end(), 0.0f);
  k.relu_gradient(s[0], s[2], y.data(), s[2], masked.data(), s[2], d[2].data());
  linear_products(k, s, in, masked, d);
}

// ---- mix: y_s = A x_s for every sample; sizes samples, nodes, width
// ------------------------------
std::vector<int64_t> mix_inputs(const Sizes& s) { return {s[1] * s[1], s[0] * s[1] * s[2]}; }
int64_t mix_output(const Sizes& s) { return s[0] * s[1] * s[2]; }
double mix_work(const Sizes& s) { return static_cast<double>(s[0] * s[1] * s[1] * s[2]); }

void mix_reference(const Sizes& s, const Operands<double>& in, Buffer<double>& y) {
  const int64_t n = s[1], w = s[2];
  for (int64_t i = 0; i < s[0]; ++i) {
    reference::product(false, false, n, w, n, 1, in[0].data(), n, &in[1][i * n * w], w, false,
                       &y[i * n * w], w);
  }
}
void mix_reference_gradient(const Sizes& s, const Operands<double>& in, const Buffer<double>&,
                            const Buffer<double>& dy, Operands<double>& d) {
  const int64_t n = s[1], w = s[2];
  std::fill(d[0].begin(), d[0].end(), 0.0);
  for (int64_t i = 0; i < s[0]; ++i) {
    reference::product(false, true, n, n, w, 1, &dy[i * n * w], w, &in[1][i * n * w], w, true,
                       d[0].data(), n);
    reference::product(true, false, n, w, n, 1, in[0].data(), n, &dy[i * n * w], w, false,
                       &d[1][i * n * w], w);
  }
}
void mix_cpu(const TileKernels& k, const Sizes& s, const Operands<float>& in, Buffer<float>& y) {
  const int64_t n = s[1], w = s[2];
  for (int64_t i = 0; i < s[0]; ++i) {
    k.product(n, w, n, in[0].data(), n, 1, &in[1][i * n * w], w, &y[i * n * w], w, Store::assign,
              nullptr);
  }
}
void mix_cpu_gradient(const TileKernels& k, const Sizes& s, const Operands<float>& in,
                      const Buffer<float>&, const Buffer<float>& dy, Operands<float>& d) {
  const int64_t n = s[1], w = s[2];
  std::fill(d[0].begin(), d[0].end(), 0.0f);
  k.node_products(s[0], n, w, dy.data(), w, in[1].data(), w, d[0].data(), n);
  for (int64_t i = 0; i < s[0]; ++i) {
    k.product(n, w, n, in[0].data(), 1, n, &dy[i * n * w], w, &d[1][i * n * w], w, Store::assign,
              nullptr);
  }
}

// ---- softmax of rows; sizes rows, columns
// --------------------------------------------------------
std::vector<int64_t> rows_inputs(const Sizes& s) { return {s[0] * s[1]}; }
int64_t rows_output(const Sizes& s) { return s[0] * s[1]; }
double rows_work(const Sizes& s) { return static_cast<double>(s[0] * s[1]); }

void softmax_reference(const Sizes& s, const Operands<double>& in, Buffer<double>& y) {
  y = in[0];
  reference::softmax_rows(s[0], s[1], y.data());
}
void softmax_reference_gradient(const Sizes& s, const Operands<double>&, const Buffer<double>& y,
                                const Buffer<double>& dy, Operands<double>& d) {
  d[0] = dy;
  reference::softmax_rows_gradient(s[0], s[1], y.data(), d[0].data());
}
void softmax_cpu(const TileKernels& k, const Sizes& s, const Operands<float>& in,
                 Buffer<float>& y) {
  y = in[0];
  k.softmax_rows(s[0], s[1], s[1], y.data());
}
void softmax_cpu_gradient(const TileKernels& k, const Sizes& s, const Operands<float>&,
                          const Buffer<float>& y, const Buffer<float>& dy, Operands<float>& d) {
  d[0] = dy;
  k.softmax_rows_gradient(s[0], s[1], s[1], y.data(), d[0].data());
}

// ---- sum of gradient parts, in order; sizes parts, count
// -----------------------------------------
int64_t sum_output(const Sizes& s) { return s[1]; }

void sum_reference(const Sizes& s, const Operands<double>& in, Buffer<double>& y) {
  std::fill(y.begin(), y.end(), 0.0);
  for (int64_t p = 0; p < s[0]; ++p) {
    for (int64_t i = 0; i < s[1]; ++i) y[i] += in[0][p * s[1] + i];
  }
}
void sum_reference_gradient(const Sizes& s, const Operands<double>&, const Buffer<double>&,
                            const Buffer<double>& dy, Operands<double>& d) {
  for (int64_t p = 0; p < s[0]; ++p) std::copy(dy.begin(), dy.end(), d[0].begin() + p * s[1]);
}
void sum_cpu(const TileKernels& k, const Sizes& s, const Operands<float>& in, Buffer<float>& y) {
  k.sum_parts(s[1], static_cast<int>(s[0]), s[1], in[0].data(), y.data());
}

// ---- one Adam step; inputs gradient, moments, weights; output the new moments and weights
// ---------
std::vector<int64_t> adam_inputs(const Sizes& s) { return {s[0], s[0], s[0], s[0]}; }
int64_t adam_output(const Sizes& s) { return 3 * s[0]; }
double adam_work(const Sizes& s) { return 10.0 * static_cast<double>(s[0]); }
Sizes one_random(RandomStream& random) { return {between(random, 1, 200)}; }

template <class T>
AdamNumbers<T> adam_numbers() {
  return {T(0.01), T(0.999), T(0.9), T(0.1), T(0.999), T(0.001), T(0.5), T(1e-8), T(0.002)};
}
void adam_reference(const Sizes& s, const Operands<double>& in, Buffer<double>& y) {
  const AdamNumbers<double> n = adam_numbers<double>();
  for (int64_t i = 0; i < s[0]; ++i) {
    const double g = in[0][i] + n.decay_to_gradient * in[3][i];
    const double m = y[i] = n.beta1 * in[1][i] + n.rest1 * g;
    // A second moment is a mean of squares, so the random operand is squared first.
    const double v = y[s[0] + i] = n.beta2 * in[2][i] * in[2][i] + n.rest2 * g * g;
    y[2 * s[0] + i] =
        n.keep * in[3][i] - n.step_size * m / (std::sqrt(v) / n.root_correction2 + n.epsilon);
  }
}
void adam_cpu(const TileKernels& k, const Sizes& s, const Operands<float>& in, Buffer<float>& y) {
  std::copy(in[1].begin(), in[1].end(), y.begin());
  std::transform(in[2].begin(), in[2].end(), y.begin() + s[0], [](float x) { return x * x; });
  std::copy(in[3].begin(), in[3].end(), y.begin() + 2 * s[0]);
  k.adam(adam_numbers<float>(), s[0], in[0].data(), y.data(), y.data() + s[0], y.data() + 2 * s[0]);
}

std::vector<Operation> make_operations() {
  return {
      {"linear",
       "y = x W^T + b",
       {"rows", "in", "out"},
       linear_random,
       {144, 192, 64},
       linear_inputs,
       linear_output,
       linear_work,
       linear_reference,
       linear_reference_gradient,
       linear_cpu,
       linear_cpu_gradient},
      {"linear-relu",
       "y = max(0, x W^T + b)",
       {"rows", "in", "out"},
       linear_random,
       {144, 192, 64},
       linear_inputs,
       linear_output,
       linear_work,
       relu_reference,
       relu_reference_gradient,
       relu_cpu,
       relu_cpu_gradient},
      {"mix",
       "y_s = A x_s",
       {"samples", "nodes", "width"},
       three_random,
       {16, 9, 64},
       mix_inputs,
       mix_output,
       mix_work,
       mix_reference,
       mix_reference_gradient,
       mix_cpu,
       mix_cpu_gradient},
      {"softmax",
       "y_i = exp(x_i) / sum_j exp(x_j)",
       {"rows", "columns"},
       two_random,
       {288, 9},
       rows_inputs,
       rows_output,
       rows_work,
       softmax_reference,
       softmax_reference_gradient,
       softmax_cpu,
       softmax_cpu_gradient},
      {"sum-parts",
       "y = x_1 + x_2 + ...",
       {"parts", "count"},
       two_random,
       {8, 84577},
       rows_inputs,
       sum_output,
       rows_work,
       sum_reference,
       sum_reference_gradient,
       sum_cpu,
       nullptr},
      {"adam",
       "m, v, w of one optimiser step",
       {"count"},
       one_random,
       {84577},
       adam_inputs,
       adam_output,
       adam_work,
       adam_reference,
       nullptr,
       adam_cpu,
       nullptr},
  };
}

}  // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> table = [] {
    std::vector<Operation> all = make_operations();
    std::ranges::move(plain_operations(), std::back_inserter(all));
    return all;
  }();
  return table;
}

}  // namespace posattn
