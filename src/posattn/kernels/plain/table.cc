#include "posattn/kernels/plain/table.h"

#include <algorithm>

#include "posattn/kernels/plain/activation.h"
#include "posattn/kernels/plain/normalisation.h"
#include "posattn/kernels/plain/product.h"
#include "posattn/kernels/plain/relative.h"
#include "posattn/kernels/plain/rows.h"

namespace posattn {
namespace {

int64_t between(RandomStream& random, int low, int high) {
  return low + random.below(static_cast<uint32_t>(high - low + 1));
}
Sizes two_random(RandomStream& random) { return {between(random, 1, 40), between(random, 1, 70)}; }
Sizes three_random(RandomStream& random) {
  return {between(random, 1, 40), between(random, 1, 40), between(random, 1, 20)};
}
int64_t whole(const Sizes& s) { return s[0] * s[1]; }
double whole_work(const Sizes& s) { return static_cast<double>(whole(s)); }
std::vector<int64_t> one_whole(const Sizes& s) { return {whole(s)}; }

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

// An operation of both precisions: forward(kernels, sizes, inputs, output) and gradient(kernels,
// sizes, inputs, output, doutput, dinputs), as templates of a struct; double reads no kernels.
template <class Row>
Operation row(std::string name, std::string formula, std::vector<std::string> size_names,
              Sizes (*random_sizes)(RandomStream&), Sizes paper_sizes,
              std::vector<int64_t> (*input_counts)(const Sizes&),
              int64_t (*output_count)(const Sizes&), double (*multiply_adds)(const Sizes&)) {
  return {std::move(name),
          std::move(formula),
          std::move(size_names),
          random_sizes,
          std::move(paper_sizes),
          input_counts,
          output_count,
          multiply_adds,
          [](const Sizes& s, const Operands<double>& in, Buffer<double>& y) {
            Row::template forward<double>(tile_kernels(), s, in, y);
          },
          [](const Sizes& s, const Operands<double>& in, const Buffer<double>& y,
             const Buffer<double>& dy, Operands<double>& d) {
            Row::template gradient<double>(tile_kernels(), s, in, y, dy, d);
          },
          &Row::template forward<float>,
          &Row::template gradient<float>};
}

struct LayerNorm {  // sizes rows, columns; inputs x, gain, shift
  // The gradient of a row of two numbers is nothing but rounding.
  static Sizes sizes(RandomStream& random) {
    return {between(random, 1, 40), between(random, 4, 70)};
  }
  static std::vector<int64_t> inputs(const Sizes& s) { return {whole(s), s[1], s[1]}; }
  template <class T>
  static void forward(const TileKernels& k, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    plain::layer_norm(s[0], s[1], in[0].data(), in[1].data(), in[2].data(), y.data(), k);
  }
  template <class T>
  static void gradient(const TileKernels& k, const Sizes& s, const Operands<T>& in,
                       const Buffer<T>&, const Buffer<T>& dy, Operands<T>& d) {
    clear(d);
    plain::layer_norm_gradient(s[0], s[1], in[0].data(), in[1].data(), dy.data(), d[0].data(),
                               d[1].data(), d[2].data(), k);
  }
};

template <class Row>
struct Elementwise {  // sizes rows, columns
  template <class T>
  static void forward(const TileKernels& k, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    Row::value(whole(s), in[0].data(), y.data(), k);
  }
  template <class T>
  static void gradient(const TileKernels& k, const Sizes& s, const Operands<T>& in,
                       const Buffer<T>&, const Buffer<T>& dy, Operands<T>& d) {
    Buffer<T> again(whole(s));
    Row::slope(whole(s), in[0].data(), dy.data(), d[0].data(), again.data(), k);
  }
};
struct Gelu : Elementwise<Gelu> {
  static void value(int64_t count, const auto* x, auto* y, const TileKernels& k) {
    plain::gelu(count, x, y, k);
  }
  static void slope(int64_t count, const auto* x, const auto* dy, auto* dx, auto* y,
                    const TileKernels& k) {
    plain::gelu_gradient(count, x, dy, dx, y, k);
  }
};
struct GeluTanh : Elementwise<GeluTanh> {
  static void value(int64_t count, const auto* x, auto* y, const TileKernels& k) {
    plain::gelu_tanh(count, x, y, k);
  }
  static void slope(int64_t count, const auto* x, const auto* dy, auto* dx, auto* y,
                    const TileKernels& k) {
    plain::gelu_tanh_gradient(count, x, dy, dx, y, k);
  }
};

struct Embed {  // sizes rows, columns, vocabulary; inputs tokens, table
  static std::vector<int64_t> inputs(const Sizes& s) { return {s[0], s[2] * s[1]}; }
  template <class T>
  static void forward(const TileKernels&, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    std::ranges::fill(y, T(0));
    plain::embed(s[0], s[1], classes(in[0], s[2]).data(), in[1].data(), y.data());
  }
  template <class T>
  static void gradient(const TileKernels&, const Sizes& s, const Operands<T>& in, const Buffer<T>&,
                       const Buffer<T>& dy, Operands<T>& d) {
    clear(d);
    plain::embed_gradient(s[0], s[1], classes(in[0], s[2]).data(), dy.data(), d[1].data());
  }
};

struct CausalSoftmax {  // sizes heads, nodes; input scores [heads, nodes, nodes]
  static int64_t count(const Sizes& s) { return s[0] * s[1] * s[1]; }
  static std::vector<int64_t> inputs(const Sizes& s) { return {count(s)}; }
  static double work(const Sizes& s) { return static_cast<double>(count(s)); }
  static Sizes sizes(RandomStream& random) {
    return {between(random, 1, 3), between(random, 1, 40)};
  }
  template <class T>
  static void forward(const TileKernels& k, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    y = in[0];
    for (int64_t h = 0; h < s[0]; ++h) plain::mask_causal(s[1], &y[h * s[1] * s[1]]);
    plain::softmax_rows(s[0] * s[1], s[1], y.data(), k);
  }
  template <class T>
  static void gradient(const TileKernels& k, const Sizes& s, const Operands<T>&, const Buffer<T>& y,
                       const Buffer<T>& dy, Operands<T>& d) {
    d[0] = dy;
    plain::softmax_rows_gradient(s[0] * s[1], s[1], y.data(), d[0].data(), k);
  }
};

struct Relative {  // sizes real nodes, scratch nodes, reach; inputs t, u of one head
  static plain::RelativeShape shape(const Sizes& s) {
    return {static_cast<int32_t>(s[0]), static_cast<int32_t>(s[1]), static_cast<int32_t>(s[2])};
  }
  static std::vector<int64_t> inputs(const Sizes& s) {
    return {shape(s).distances(), shape(s).scratch_size()};
  }
  static int64_t count(const Sizes& s) { return int64_t{1} * shape(s).nodes() * shape(s).nodes(); }
  static double work(const Sizes& s) { return static_cast<double>(count(s)); }
  static Sizes sizes(RandomStream& random) {
    return {between(random, 1, 40), between(random, 1, 3), between(random, 1, 45)};
  }
  template <class T>
  static void forward(const TileKernels&, const Sizes& s, const Operands<T>& in, Buffer<T>& y) {
    plain::relative_scores(shape(s), in[0].data(), in[1].data(), y.data(), shape(s).nodes());
  }
  template <class T>
  static void gradient(const TileKernels&, const Sizes& s, const Operands<T>&, const Buffer<T>&,
                       const Buffer<T>& dy, Operands<T>& d) {
    clear(d);
    plain::relative_scores_gradient(shape(s), dy.data(), shape(s).nodes(), d[0].data(),
                                    d[1].data());
  }
};

int64_t one_number(const Sizes&) { return 1; }

struct SquaredError {  // sizes rows, columns; inputs y, target; output the mean
  static std::vector<int64_t> inputs(const Sizes& s) { return {whole(s), whole(s)}; }
  template <class T>
  static double loss(const Sizes& s, const Operands<T>& in, Buffer<T>& dy) {
    double sum = 0;
    plain::squared_error(whole(s), T(1) / static_cast<T>(whole(s)), in[0].data(), in[1].data(),
                         nullptr, dy.data(), sum);
    return sum / whole_work(s);
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

struct CrossEntropy {  // sizes rows, classes; inputs y, labels; output the mean over rows
  static std::vector<int64_t> inputs(const Sizes& s) { return {whole(s), s[0]}; }
  template <class T>
  static double loss(const TileKernels& k, const Sizes& s, const Operands<T>& in, Buffer<T>& dy) {
    double sum = 0;
    plain::cross_entropy(s[0], s[1], T(1) / static_cast<T>(s[0]), in[0].data(),
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

std::vector<Operation> plain_operations() {
  return {
      row<LayerNorm>("layer-norm", "y = gain (x - mean) / deviation + shift", {"rows", "columns"},
                     LayerNorm::sizes, {6336, 60}, LayerNorm::inputs, whole, whole_work),
      row<Gelu>("gelu", "y = x Phi(x)", {"rows", "columns"}, two_random, {6336, 240}, one_whole,
                whole, whole_work),
      row<GeluTanh>("gelu-tanh", "y = x (1 + tanh(...)) / 2", {"rows", "columns"}, two_random,
                    {6336, 240}, one_whole, whole, whole_work),
      row<Embed>("embed", "y_r = table row of token r", {"rows", "columns", "vocabulary"},
                 three_random, {6336, 60, 16}, Embed::inputs, whole, whole_work),
      row<CausalSoftmax>("causal-softmax", "softmax over nodes 0..i", {"heads", "nodes"},
                         CausalSoftmax::sizes, {3, 99}, CausalSoftmax::inputs, CausalSoftmax::count,
                         CausalSoftmax::work),
      row<Relative>("relative-scores", "s_ij = t[i - j]", {"real", "scratch", "reach"},
                    Relative::sizes, {8, 1, 8}, Relative::inputs, Relative::count, Relative::work),
      row<SquaredError>("squared-error", "mean of (y - target)^2", {"rows", "columns"}, two_random,
                        {9000, 1}, SquaredError::inputs, one_number, whole_work),
      row<CrossEntropy>("cross-entropy", "mean of -log softmax(y)[label]", {"rows", "classes"},
                        two_random, {6336, 16}, CrossEntropy::inputs, one_number, whole_work),
  };
}

}  // namespace posattn
