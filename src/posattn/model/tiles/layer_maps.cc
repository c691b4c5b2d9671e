#include "posattn/model/tiles/layer_maps.h"

#include <algorithm>

#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn::engine {

LinearMap layer_input_map(const ModelSpec& spec, const ParameterLayout& layout, int layer) {
  if (layer == 0) return LinearMap::find(layout, "encoding");
  return LinearMap::find(layout, names::of_layer(layer - 1, names::mlp_map(spec.mlp_depth - 1)));
}

LayerInputMap::LayerInputMap(const ModelSpec& spec, const ParameterLayout& layout, int layer,
                             LayerInput input)
    : map_(layer_input_map(spec, layout, layer)), is_identity_(input == LayerInput::x) {
  if (!is_identity_) return;
  map_ = {0, map_.out * map_.out, map_.out, map_.out};
  identity_.assign(map_.bias + map_.out, 0.0f);
  for (int64_t i = 0; i < map_.out; ++i) identity_[i * map_.out + i] = 1;
  unread_.resize(identity_.size());
}

void mix_samples(const PositionalAttention& attention, int samples, int64_t width,
                 Headed<const float> x, Headed<float> y) {
  const int64_t n = attention.nodes();
  for (int64_t s = 0; s < samples; ++s) {
    for (int h = 0; h < attention.heads(); ++h) {
      const float* from = x.at(s * n, h);
      float* to = y.at(s * n, h);
      if (const Mixing* mixing = attention.mixing(h)) {
        mixing->mix(width, from, x.stride, to, y.stride);
        continue;
      }
      tile_kernels().product(n, width, n, attention.matrix(h), attention.stride(), 1, from,
                             x.stride, to, y.stride, Store::assign, nullptr);
    }
  }
}

void mix_samples_transposed(const PositionalAttention& attention, int samples, int64_t width,
                            Headed<const float> dy, Headed<float> dx) {
  const int64_t n = attention.nodes();
  for (int64_t s = 0; s < samples; ++s) {
    for (int h = 0; h < attention.heads(); ++h) {
      tile_kernels().product(n, width, n, attention.matrix(h), 1, attention.stride(),
                             dy.at(s * n, h), dy.stride, dx.at(s * n, h), dx.stride, Store::add,
                             nullptr);
    }
  }
}

void attention_gradient(const PositionalAttention& attention, int samples, int64_t width,
                        Headed<const float> dy, Headed<const float> x, float* da, float* scratch) {
  const TileKernels& kernels = tile_kernels();
  const int64_t n = attention.nodes(), ld = attention.stride();
  // Few nodes: dot products kept in registers over all samples. Many: a product with x transposed.
  constexpr int64_t few = 32;
  for (int h = 0; h < attention.heads(); ++h) {
    float* out = da + h * attention.head_stride();
    if (n <= few) {
      kernels.node_products(samples, n, width, dy.at(0, h), dy.stride, x.at(0, h), x.stride, out,
                            ld);
      continue;
    }
    for (int64_t s = 0; s < samples; ++s) {
      kernels.transpose(n, width, x.at(s * n, h), x.stride, scratch, ld);
      kernels.product(n, n, width, dy.at(s * n, h), dy.stride, 1, scratch, ld, out, ld, Store::add,
                      nullptr);
    }
  }
}

void add_outer(int64_t m, int64_t n, const float* x, const float* y, float* a, int64_t lda) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) a[i * lda + j] += x[i] * y[j];
  }
}

void copy_attention(const PositionalAttention& attention, float* out) {
  const int n = attention.nodes();
  for (int h = 0; h < attention.heads(); ++h) {
    for (int i = 0; i < n; ++i, out += n) {
      std::copy_n(attention.matrix(h) + i * attention.stride(), n, out);
    }
  }
}

StageWork attention_layer_work(const ModelSpec& spec, const PositionalAttention* positional) {
  const double d = spec.width, n = spec.nodes(), dk = spec.key_size(), h = spec.heads;
  double per_node = 2 * d * d + n * d + 2 * d * spec.mlp_width + spec.mlp_width * d;
  if (!positional) per_node += dk * 2 * dk * h + h * n * dk;
  return {per_node * n, positional ? positional->work() : 0};
}

DenseMap::DenseMap(const LinearMap& map, int64_t columns)
    : map_(map), in_(columns ? columns : map.in) {}

void DenseMap::prepare(const float* weights) {
  weights_ = weights;
  transposed_.resize(in_ * padded(map_.out));
  tile_kernels().transpose(map_.out, in_, weights + map_.weight, map_.in, transposed_.data(),
                           padded(map_.out));
}

void DenseMap::forward(int64_t rows, const float* x, int64_t x_stride, float* y, int64_t y_stride,
                       Store store) const {
  tile_kernels().product(rows, map_.out, in_, x, x_stride, 1, transposed_.data(), padded(map_.out),
                         y, y_stride, store, weights_ + map_.bias);
}

void DenseMap::input_gradient(int64_t rows, const float* dy, int64_t dy_stride, float* dx,
                              int64_t dx_stride, Store store) const {
  tile_kernels().product(rows, in_, map_.out, dy, dy_stride, 1, weights_ + map_.weight, map_.in, dx,
                         dx_stride, store, nullptr);
}

void DenseMap::weight_gradient(int64_t rows, const float* x, int64_t x_stride, const float* dy,
                               int64_t dy_stride, float* gradient) const {
  tile_kernels().product(in_, map_.out, rows, x, 1, x_stride, dy, dy_stride, gradient,
                         padded(map_.out), Store::add, nullptr);
}

void DenseMap::sum_bias(int64_t rows, const float* dy, int64_t dy_stride, float* gradient) const {
  tile_kernels().column_sums(rows, map_.out, dy, dy_stride, bias_gradient(gradient));
}

void DenseMap::finish(const float* gradient, float* values, bool with_bias) const {
  tile_kernels().transpose(in_, map_.out, gradient, padded(map_.out), values + map_.weight,
                           map_.in);
  if (with_bias) std::copy_n(gradient + in_ * padded(map_.out), map_.out, values + map_.bias);
}

}  // namespace posattn::engine
