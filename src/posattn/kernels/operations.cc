#include "posattn/kernels/operations.h"

#include <algorithm>
#include <cmath>

#include "posattn/kernels/generic/activation.h"
#include "posattn/kernels/generic/linear.h"
#include "posattn/kernels/generic/neurons.h"
#include "posattn/kernels/generic/normalisation.h"
#include "posattn/kernels/generic/product.h"
#include "posattn/kernels/generic/relative.h"
#include "posattn/kernels/generic/rows.h"

namespace posattn {
namespace {

int64_t between(RandomStream& random, int low, int high) {
  return low + random.below(static_cast<uint32_t>(high - low + 1));
}
int64_t whole(const Sizes& s) { return s[0] * s[1]; }

template <class T>
void clear(Operands<T>& operands) {
  for (Buffer<T>& part : operands) std::ranges::fill(part, T(0));
}
template <class T>
std::vector<int32_t> classes(const Buffer<T>& operand, int64_t count) {
  std::vector<int32_t> result(operand.size());
  std::ranges::transform(operand, result.begin(), [&](T x) { return class_of(x, count); });
  return result;
}

// The defaults of a row: one operand of rows and columns, the output as large. Sizes around the
// vector lengths are the interesting ones.
struct Rows {
  static Sizes random(RandomStream& random) {
    return {between(random, 1, 40), between(random, 1, 70)};
  }
  static std::vector<int64_t> inputs(const Sizes& s) { return {whole(s)}; }
  static int64_t output(const Sizes& s) { return whole(s); }
  static double work(const Sizes& s) { return static_cast<double>(whole(s)); }
};

// An operation in both precisions is a struct with forward(kernels, sizes, inputs, output) and,
// where it is differentiated, gradient(kernels, sizes, inputs, output, doutput, dinputs). Double
// reads no kernels.
template <class Row>
Operation row(std::string name, std::string formula, std::vector<std::string> size_names,
              Sizes paper_sizes) {
  Operation result = {std::move(name),
                      std::move(formula),
                      std::move(size_names),
                      Row::random,
                      std::move(paper_sizes),
                      Row::inputs,
                      Row::output,
                      Row::work,
                      [](const Sizes& s, const Operands<double>& in, Buffer<double>& y) {
                        Row::forward(tile_kernels(), s, in, y);
                      },
                      nullptr,
                      [](const TileKernels& k, const Sizes& s, const Operands<float>& in,
                         Buffer<float>& y) { Row::forward(k, s, in, y); },
                      nullptr};
  if constexpr (requires(const TileKernels& k, const Sizes& s, Operands<double>& d) {
                  Row::gradient(k, s, d, d[0], d[0], d);
                }) {
    result.reference_gradient = [](const Sizes& s, const Operands<double>& in,
                                   const Buffer<double>& y, const Buffer<double>& dy,
                                   Operands<double>& d) {
      Row::gradient(tile_kernels(), s, in, y, dy, d);
    };
  }
  if constexpr (requires(const TileKernels& k, const Sizes& s, Operands<float>& d) {
                  Row::gradient(k, s, d, d[0], d[0], d);
                }) {
    result.cpu_gradient = [](const TileKernels& k, const Sizes& s, const Operands<float>& in,
                             const Buffer<float>& y, const Buffer<float>& dy,
                             Operands<float>& d) { Row::gradient(k, s, in, y, dy, d); };
  }
  return result;
}

struct Linear {  // sizes rows, in, out; inputs x, W, b
  // Now and then whole panels and an inner dimension that is cut.
  static Sizes random(RandomStream& random) {
    if (random.below(4) != 0) {
      return {between(random, 1, 40), between(random, 1, 40), between(random, 1, 70)};
    }
    return {between(random, 90, 220), between(random, 60, 140), between(random, 60, 140)};
  }
  static std::vector<int64_t> inputs(const Sizes& s) { return {s[0] * s[1], s[2] * s[1], s[2]}; }
  static int64_t output(const Sizes& s) { return s[0] * s[2]; }
  static double work(const Sizes& s) { return static_cast<double>(s[0] * s[1] * s[2]); }
  static void store(const TileKernels& k, const Sizes& s, const Operands<float>& in, Store store,
                    Buffer<float>& y) {
    Buffer<float> transposed(s[1] * s[2]);
    k.transpose(s[2], s[1], in[1].data(), s[1], transposed.data(), s[2]);
    k.product(s[0], s[2], s[1], in[0].data(), s[1], 1, transposed.data(), s[2], y.data(), s[2],
              store, in[2].data());
  }
  static void forward(const TileKernels&, const Sizes& s, const Operands<double>& in,
                      Buffer<double>& y) {
    reference::linear(s[0], s[1], s[2], in[0].data(), in[1].data(), in[2].data(), y.data());
  }
  static void forward(const TileKernels& k, const Sizes& s, const Operands<float>& in,
                      Buffer<float>& y) {
    store(k, s, in, Store::bias, y);
  }
  template <class T>
  static void gradient(const TileKernels& k, const Sizes& s, const Operands<T>& in,
                       const Buffer<T>&, const Buffer<T>& dy, Operands<T>& d) {
    clear(d);
    generic::linear_input_gradient(s[0], s[1], s[2], in[1].data(), dy.data(), false, d[0].data(),
                                   k);
    generic::linear_weight_gradient(s[0], s[1], s[2], in[0].data(), dy.data(), d[1].data(),
                                    d[2].data(), k);
  }
};

struct LinearRelu : Linear {
  static void forward(const TileKernels& k, const Sizes& s, const Operands<double>& in,
                      Buffer<double>& y) {
    Linear::forward(k, s, in, y);
    reference::relu(output(s), y.data());
  }
  static void forward(const TileKernels& k, const Sizes& s, const Operands<float>& in,
                      Buffer<float>& y) {
    store(k, s, in, Store::bias_relu, y);
  }
  static void gradient(const TileKernels& k, const Sizes& s, const Operands<double>& in,
                       const Buffer<double>& y, Buffer<double> dy, Operands<double>& d) {
    reference::relu_gradient(output(s), y.data(), dy.data());
    Linear::gradient(k, s, in, y, dy, d);
  }
  static void gradient(const TileKernels& k, const Sizes& s, const Operands<float>& in,
                       const Buffer<float>& y, Buffer<float> dy, Operands<float>& d) {
    Buffer<float> dbias(s[2]);
    k.relu_gradient(s[0], s[2], y.data(), s[2], dy.data(), s[2], dbias.data());
    Linear::gradient(k, s, in, y, dy, d);
    d[2] = dbias;
  }
};

struct Mix {  // sizes samples, nodes, width; inputs A, x
  static Sizes random(RandomStream& random) {
    return {between(random, 1, 40), between(random, 1, 40), between(random, 1, 70)};
  }
  static std::vector<int64_t> inputs(const Sizes& s) { return {s[1] * s[1], s[0] * s[1] * s[2]}; }
  static int64_t output(const Sizes& s) { return s[0] * s[1] * s[2]; }
  static double work(const Sizes& s) { return static_cast<double>(s[0] * s[1] * s[1] * s[2]); }
  // y_s = A x_s, or A^T x_s
  static void mix(const TileKernels&, const Sizes& s, bool transpose, const Buffer<double>& a,
                  const Buffer<double>& x, Buffer<double>& y) {
    for (int64_t i = 0; i < output(s); i += s[1] * s[2]) {
      reference::product(transpose, false, s[1], s[2], s[1], 1, a.data(), s[1], &x[i], s[2], false,
                         &y[i], s[2]);
    }
  }
  static void mix(const TileKernels& k, const Sizes& s, bool transpose, const Buffer<float>& a,
                  const Buffer<float>& x, Buffer<float>& y) {
    for (int64_t i = 0; i < output(s); i += s[1] * s[2]) {
      k.product(s[1], s[2], s[1], a.data(), transpose ? 1 : s[1], transpose ? s[1] : 1, &x[i], s[2],
                &y[i], s[2], Store::assign, nullptr);
    }
  }
  // dA += sum_s dy_s x_s^T
  static void attention(const TileKernels&, const Sizes& s, const Buffer<double>& dy,
                        const Buffer<double>& x, Buffer<double>& da) {
    for (int64_t i = 0; i < output(s); i += s[1] * s[2]) {
      reference::product(false, true, s[1], s[1], s[2], 1, &dy[i], s[2], &x[i], s[2], true,
                         da.data(), s[1]);
    }
  }
  static void attention(const TileKernels& k, const Sizes& s, const Buffer<float>& dy,
                        const Buffer<float>& x, Buffer<float>& da) {
    k.node_products(s[0], s[1], s[2], dy.data(), s[2], x.data(), s[2], da.data(), s[1]);
  }
  template <class T>
  static void forward(const TileKernels& k, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    mix(k, s, false, in[0], in[1], y);
  }
  template <class T>
  static void gradient(const TileKernels& k, const Sizes& s, const Operands<T>& in,
                       const Buffer<T>&, const Buffer<T>& dy, Operands<T>& d) {
    clear(d);
    attention(k, s, dy, in[1], d[0]);
    mix(k, s, true, in[0], dy, d[1]);
  }
};

struct Softmax : Rows {  // sizes rows, columns
  template <class T>
  static void forward(const TileKernels& k, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    y = in[0];
    generic::softmax_rows(s[0], s[1], y.data(), k);
  }
  template <class T>
  static void gradient(const TileKernels& k, const Sizes& s, const Operands<T>&, const Buffer<T>& y,
                       const Buffer<T>& dy, Operands<T>& d) {
    d[0] = dy;
    generic::softmax_rows_gradient(s[0], s[1], y.data(), d[0].data(), k);
  }
};

struct SumParts : Rows {  // sizes parts, count
  static int64_t output(const Sizes& s) { return s[1]; }
  static void forward(const TileKernels&, const Sizes& s, const Operands<double>& in,
                      Buffer<double>& y) {
    std::ranges::fill(y, 0.0);
    for (int64_t i = 0; i < whole(s); ++i) y[i % s[1]] += in[0][i];
  }
  static void forward(const TileKernels& k, const Sizes& s, const Operands<float>& in,
                      Buffer<float>& y) {
    k.sum_parts(s[1], static_cast<int>(s[0]), s[1], in[0].data(), y.data());
  }
  static void gradient(const TileKernels&, const Sizes& s, const Operands<double>&,
                       const Buffer<double>&, const Buffer<double>& dy, Operands<double>& d) {
    for (int64_t i = 0; i < whole(s); ++i) d[0][i] = dy[i % s[1]];
  }
};

struct Adam {  // inputs gradient, moments, weights; output the new moments and weights
  static Sizes random(RandomStream& random) { return {between(random, 1, 200)}; }
  static std::vector<int64_t> inputs(const Sizes& s) { return {s[0], s[0], s[0], s[0]}; }
  static int64_t output(const Sizes& s) { return 3 * s[0]; }
  static double work(const Sizes& s) { return 10.0 * static_cast<double>(s[0]); }
  template <class T>
  static AdamNumbers<T> numbers() {
    return {T(0.01), T(0.999), T(0.9), T(0.1), T(0.999), T(0.001), T(0.5), T(1e-8), T(0.002)};
  }
  static void forward(const TileKernels&, const Sizes& s, const Operands<double>& in,
                      Buffer<double>& y) {
    const AdamNumbers<double> n = numbers<double>();
    for (int64_t i = 0; i < s[0]; ++i) {
      const double g = in[0][i] + n.decay_to_gradient * in[3][i];
      const double m = y[i] = n.beta1 * in[1][i] + n.rest1 * g;
      // A second moment is a mean of squares, so the random operand is squared first.
      const double v = y[s[0] + i] = n.beta2 * in[2][i] * in[2][i] + n.rest2 * g * g;
      y[2 * s[0] + i] =
          n.keep * in[3][i] - n.step_size * m / (std::sqrt(v) / n.root_correction2 + n.epsilon);
    }
  }
  static void forward(const TileKernels& k, const Sizes& s, const Operands<float>& in,
                      Buffer<float>& y) {
    std::ranges::copy(in[1], y.begin());
    std::ranges::transform(in[2], y.begin() + s[0], [](float x) { return x * x; });
    std::ranges::copy(in[3], y.begin() + 2 * s[0]);
    k.adam(numbers<float>(), s[0], in[0].data(), y.data(), y.data() + s[0], y.data() + 2 * s[0]);
  }
};

struct LayerNorm : Rows {  // sizes rows, columns; inputs x, gain, shift
  // The gradient of a row of two numbers is nothing but rounding.
  static Sizes random(RandomStream& random) {
    return {between(random, 1, 40), between(random, 4, 70)};
  }
  static std::vector<int64_t> inputs(const Sizes& s) { return {whole(s), s[1], s[1]}; }
  template <class T>
  static void forward(const TileKernels& k, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    generic::layer_norm(s[0], s[1], in[0].data(), in[1].data(), in[2].data(), y.data(), k);
  }
  template <class T>
  static void gradient(const TileKernels& k, const Sizes& s, const Operands<T>& in,
                       const Buffer<T>&, const Buffer<T>& dy, Operands<T>& d) {
    clear(d);
    generic::layer_norm_gradient(s[0], s[1], in[0].data(), in[1].data(), dy.data(), d[0].data(),
                                 d[1].data(), d[2].data(), k);
  }
};

template <class Value, class Slope>
struct Elementwise : Rows {
  template <class T>
  static void forward(const TileKernels& k, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    Value{}(whole(s), in[0].data(), y.data(), k);
  }
  template <class T>
  static void gradient(const TileKernels& k, const Sizes& s, const Operands<T>& in,
                       const Buffer<T>&, const Buffer<T>& dy, Operands<T>& d) {
    Buffer<T> again(whole(s));
    Slope{}(whole(s), in[0].data(), dy.data(), d[0].data(), again.data(), k);
  }
};
constexpr auto gelu = [](auto... x) { generic::gelu(x...); };
constexpr auto gelu_slope = [](auto... x) { generic::gelu_gradient(x...); };
constexpr auto gelu_tanh = [](auto... x) { generic::gelu_tanh(x...); };
constexpr auto gelu_tanh_slope = [](auto... x) { generic::gelu_tanh_gradient(x...); };
using Gelu = Elementwise<decltype(gelu), decltype(gelu_slope)>;
using GeluTanh = Elementwise<decltype(gelu_tanh), decltype(gelu_tanh_slope)>;

struct Embed : Rows {  // sizes rows, columns, vocabulary; inputs tokens, table
  static Sizes random(RandomStream& random) {
    return {between(random, 1, 40), between(random, 1, 40), between(random, 1, 20)};
  }
  static std::vector<int64_t> inputs(const Sizes& s) { return {s[0], s[2] * s[1]}; }
  template <class T>
  static void forward(const TileKernels&, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    std::ranges::fill(y, T(0));
    generic::embed(s[0], s[1], classes(in[0], s[2]).data(), in[1].data(), false, y.data());
  }
  template <class T>
  static void gradient(const TileKernels&, const Sizes& s, const Operands<T>& in, const Buffer<T>&,
                       const Buffer<T>& dy, Operands<T>& d) {
    clear(d);
    generic::embed_gradient(s[0], s[1], classes(in[0], s[2]).data(), dy.data(), d[1].data());
  }
};

struct CausalSoftmax {  // sizes heads, nodes; input scores [heads, nodes, nodes]
  static int64_t output(const Sizes& s) { return s[0] * s[1] * s[1]; }
  static std::vector<int64_t> inputs(const Sizes& s) { return {output(s)}; }
  static double work(const Sizes& s) { return static_cast<double>(output(s)); }
  static Sizes random(RandomStream& random) {
    return {between(random, 1, 3), between(random, 1, 40)};
  }
  template <class T>
  static void forward(const TileKernels& k, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    y = in[0];
    for (int64_t h = 0; h < s[0]; ++h) generic::mask_causal(s[1], &y[h * s[1] * s[1]]);
    generic::softmax_rows(s[0] * s[1], s[1], y.data(), k);
  }
  template <class T>
  static void gradient(const TileKernels& k, const Sizes& s, const Operands<T>&, const Buffer<T>& y,
                       const Buffer<T>& dy, Operands<T>& d) {
    d[0] = dy;
    generic::softmax_rows_gradient(s[0] * s[1], s[1], y.data(), d[0].data(), k);
  }
};

struct Relative {  // sizes real nodes, scratch nodes, reach; inputs t, u of one head
  static generic::RelativeShape shape(const Sizes& s) {
    return {static_cast<int32_t>(s[0]), static_cast<int32_t>(s[1]), static_cast<int32_t>(s[2])};
  }
  static std::vector<int64_t> inputs(const Sizes& s) {
    return {shape(s).distances(), shape(s).scratch_size()};
  }
  static int64_t output(const Sizes& s) { return int64_t{1} * shape(s).nodes() * shape(s).nodes(); }
  static double work(const Sizes& s) { return static_cast<double>(output(s)); }
  static Sizes random(RandomStream& random) {
    return {between(random, 1, 40), between(random, 1, 3), between(random, 1, 45)};
  }
  template <class T>
  static void forward(const TileKernels&, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    generic::relative_scores(shape(s), in[0].data(), in[1].data(), y.data(), shape(s).nodes());
  }
  template <class T>
  static void gradient(const TileKernels&, const Sizes& s, const Operands<T>&, const Buffer<T>&,
                       const Buffer<T>& dy, Operands<T>& d) {
    clear(d);
    generic::relative_scores_gradient(shape(s), dy.data(), shape(s).nodes(), d[0].data(),
                                      d[1].data());
  }
};

struct ScaleParts : Rows {  // sizes rows, columns
  // The gradient of a part of one number is zero but for rounding.
  static Sizes random(RandomStream& random) {
    return {between(random, 1, 40), between(random, 3, 70)};
  }
  template <class T>
  static T scale(const Sizes& s, T* x) {
    return generic::to_norm(s[1], std::sqrt(static_cast<T>(s[1])), x);
  }
  template <class T>
  static void forward(const TileKernels&, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    std::ranges::copy(in[0], y.begin());
    for (int64_t r = 0; r < s[0]; ++r) scale(s, &y[r * s[1]]);
  }
  template <class T>
  static void gradient(const TileKernels&, const Sizes& s, const Operands<T>& in,
                       const Buffer<T>& y, const Buffer<T>& dy, Operands<T>& d) {
    std::ranges::copy(dy, d[0].begin());
    for (int64_t r = 0; r < s[0]; ++r) {
      Buffer<T> x(s[1]);
      std::copy_n(&in[0][r * s[1]], s[1], x.begin());
      const T inverse = scale(s, x.data());
      generic::to_norm_gradient(s[1], std::sqrt(static_cast<T>(s[1])), inverse, &y[r * s[1]],
                                &d[0][r * s[1]]);
    }
  }
};

struct UnitKeys : Rows {  // sizes rows, heads, size; inputs queries and keys, log_scale
  static Sizes random(RandomStream& random) {
    return {between(random, 1, 30), between(random, 1, 3), between(random, 3, 70)};
  }
  static std::vector<int64_t> inputs(const Sizes& s) { return {output(s), s[1]}; }
  static int64_t output(const Sizes& s) { return 2 * s[0] * s[1] * s[2]; }
  static double work(const Sizes& s) { return static_cast<double>(output(s)); }
  template <class T>
  static void forward(const TileKernels&, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    Buffer<T> kept(2 * s[0] * s[1]);
    std::ranges::copy(in[0], y.begin());
    generic::unit_keys(s[0], static_cast<int>(s[1]), s[2], in[1].data(), y.data(), kept.data());
  }
  template <class T>
  static void gradient(const TileKernels&, const Sizes& s, const Operands<T>& in,
                       const Buffer<T>& y, const Buffer<T>& dy, Operands<T>& d) {
    clear(d);
    std::ranges::copy(dy, d[0].begin());
    Buffer<T> again(output(s)), kept(2 * s[0] * s[1]);
    std::ranges::copy(in[0], again.begin());
    const auto heads = static_cast<int>(s[1]);
    generic::unit_keys(s[0], heads, s[2], in[1].data(), again.data(), kept.data());
    generic::unit_keys_gradient(s[0], heads, s[2], in[1].data(), y.data(), kept.data(), d[0].data(),
                                d[1].data());
  }
};

// In soft mode: of spikes rounding decides some, and their gradient is no derivative.
struct Fire {  // sizes steps, nodes, columns; inputs x of two samples, gain
  static Sizes random(RandomStream& random) {
    return {between(random, 1, 6), between(random, 1, 4), between(random, 1, 40)};
  }
  static generic::NeuronShape shape(const Sizes& s) { return {2, s[0], s[1], s[2], 0.5, true}; }
  static std::vector<int64_t> inputs(const Sizes& s) { return {output(s), s[2]}; }
  static int64_t output(const Sizes& s) { return shape(s).count(); }
  static double work(const Sizes& s) { return static_cast<double>(2 * output(s)); }
  template <class T>
  static void forward(const TileKernels&, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    generic::fire(shape(s), in[1].data(), in[0].data(), y.data());
  }
  template <class T>
  static void gradient(const TileKernels&, const Sizes& s, const Operands<T>& in, const Buffer<T>&,
                       const Buffer<T>& dy, Operands<T>& d) {
    Buffer<T> again(output(s));
    clear(d);
    std::ranges::copy(dy, d[0].begin());
    generic::fire_gradient(shape(s), in[1].data(), in[0].data(), d[0].data(), d[1].data(),
                           again.data());
  }
};

struct SignProducts {  // sizes rows, columns, size; inputs x, y
  static Sizes random(RandomStream& random) {
    return {between(random, 1, 40), between(random, 1, 40), between(random, 1, 200)};
  }
  static std::vector<int64_t> inputs(const Sizes& s) { return {s[0] * s[2], s[1] * s[2]}; }
  static int64_t output(const Sizes& s) { return s[0] * s[1]; }
  static double work(const Sizes& s) { return static_cast<double>(s[0] * s[1] * s[2]); }
  static void forward(const TileKernels&, const Sizes& s, Operands<double> in,
                      Buffer<double>& out) {
    for (Buffer<double>& part : in) {
      for (double& x : part) x = (x > 0) - (x < 0);
    }
    reference::product(false, true, s[0], s[1], s[2], 1, in[0].data(), s[2], in[1].data(), s[2],
                       false, out.data(), s[1]);
  }
  static void forward(const TileKernels& k, const Sizes& s, const Operands<float>& in,
                      Buffer<float>& out) {
    Buffer<uint64_t> packed(2 * (s[0] + s[1]) * ((s[2] + 63) / 64));
    k.sign_products(s[0], s[1], s[2], in[0].data(), in[1].data(), packed.data(), out.data());
  }
};

struct SquaredError : Rows {  // sizes rows, columns; inputs y, target; output the mean
  static std::vector<int64_t> inputs(const Sizes& s) { return {whole(s), whole(s)}; }
  static int64_t output(const Sizes&) { return 1; }
  template <class T>
  static double loss(const Sizes& s, const Operands<T>& in, Buffer<T>& dy) {
    double sum = 0;
    generic::squared_error(whole(s), T(1) / static_cast<T>(whole(s)), T(1), in[0].data(),
                           in[1].data(), nullptr, dy.data(), sum);
    return sum / work(s);
  }
  template <class T>
  static void forward(const TileKernels&, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    Buffer<T> dy(whole(s));
    y[0] = static_cast<T>(loss(s, in, dy));
  }
  template <class T>
  static void gradient(const TileKernels&, const Sizes& s, const Operands<T>& in, const Buffer<T>&,
                       const Buffer<T>& dy, Operands<T>& d) {
    loss(s, in, d[0]);
    for (T& x : d[0]) x *= dy[0];
    std::ranges::transform(d[0], d[1].begin(), [](T x) { return -x; });
  }
};

struct CrossEntropy : Rows {  // sizes rows, classes; inputs y, labels; output the mean over rows
  static std::vector<int64_t> inputs(const Sizes& s) { return {whole(s), s[0]}; }
  static int64_t output(const Sizes&) { return 1; }
  template <class T>
  static double loss(const TileKernels& k, const Sizes& s, const Operands<T>& in, Buffer<T>& dy) {
    double sum = 0;
    generic::cross_entropy(s[0], s[1], T(1) / static_cast<T>(s[0]), in[0].data(),
                           classes(in[1], s[1]).data(), dy.data(), sum, k);
    return sum / static_cast<double>(s[0]);
  }
  template <class T>
  static void forward(const TileKernels& k, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    Buffer<T> dy(whole(s));
    y[0] = static_cast<T>(loss(k, s, in, dy));
  }
  template <class T>
  static void gradient(const TileKernels& k, const Sizes& s, const Operands<T>& in,
                       const Buffer<T>&, const Buffer<T>& dy, Operands<T>& d) {
    clear(d);
    loss(k, s, in, d[0]);
    for (T& x : d[0]) x *= dy[0];
  }
};

}  // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> table = {
      row<Linear>("linear", "y = x W^T + b", {"rows", "in", "out"}, {144, 192, 64}),
      row<LinearRelu>("linear-relu", "y = max(0, x W^T + b)", {"rows", "in", "out"},
                      {144, 192, 64}),
      row<Mix>("mix", "y_s = A x_s", {"samples", "nodes", "width"}, {16, 9, 64}),
      row<Softmax>("softmax", "y_i = exp(x_i) / sum_j exp(x_j)", {"rows", "columns"}, {288, 9}),
      row<SumParts>("sum-parts", "y = x_1 + x_2 + ...", {"parts", "count"}, {8, 84577}),
      row<Adam>("adam", "m, v, w of one optimiser step", {"count"}, {84577}),
      row<LayerNorm>("layer-norm", "y = gain (x - mean) / deviation + shift", {"rows", "columns"},
                     {6336, 60}),
      row<Gelu>("gelu", "y = x Phi(x)", {"rows", "columns"}, {6336, 240}),
      row<GeluTanh>("gelu-tanh", "y = x (1 + tanh(...)) / 2", {"rows", "columns"}, {6336, 240}),
      row<Embed>("embed", "y_r = table row of token r", {"rows", "columns", "vocabulary"},
                 {6336, 60, 16}),
      row<CausalSoftmax>("causal-softmax", "softmax over nodes 0..i", {"heads", "nodes"}, {3, 99}),
      row<Relative>("relative-scores", "s_ij = t[i - j]", {"real", "scratch", "reach"}, {8, 1, 8}),
      row<ScaleParts>("scale-parts", "y = x sqrt(columns) / |x|", {"rows", "columns"}, {144, 64}),
      row<UnitKeys>("unit-keys", "q' = e^t q / |q|, k' = k / |k|", {"rows", "heads", "size"},
                    {144, 2, 64}),
      row<Fire>("soft-neurons", "h = v + (gain x - v) / 2, y = g(h - 1/2), v = h (1 - y)",
                {"steps", "nodes", "columns"}, {4, 9, 64}),
      row<SignProducts>("sign-products", "y = sign(x) sign(w)^T by XNOR and counts, as linear",
                        {"rows", "columns", "size"}, {144, 64, 192}),
      row<SquaredError>("squared-error", "mean of (y - target)^2", {"rows", "columns"}, {9000, 1}),
      row<CrossEntropy>("cross-entropy", "mean of -log softmax(y)[label]", {"rows", "classes"},
                        {6336, 16}),
  };
  return table;
}

}  // namespace posattn
