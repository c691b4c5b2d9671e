#include "posattn/model/attention/score_convolution.h"

#include <algorithm>

#include "posattn/kernels/generic/product.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

constexpr int64_t score_hidden = score_convolution_hidden;

// visit(u, c, k, place in [window, channels, hidden])
template <class Visitor>
void visit_weights(int64_t window, int64_t channels, const Visitor& visit) {
  for (int64_t u = 0; u < score_hidden; ++u) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t k = 0; k < window; ++k) visit(u, c, k, (k * channels + c) * score_hidden + u);
    }
  }
}

}  // namespace

int score_channels(const ModelSpec& layer) {
  return layer.score_bias == ScoreBias::none ? layer.heads : 2 * layer.heads;
}

std::vector<TensorInfo> score_convolution_tensors(const ModelSpec& layer) {
  std::vector<TensorInfo> tensors;
  const auto map = [&](std::string_view name, int64_t out, int64_t in) {
    const int64_t fan_in = in * layer.score_window;
    tensors.push_back({.name = names::weight(name),
                       .shape = {out, in, 1, layer.score_window},
                       .initial = Initial::fan_in_uniform,
                       .fan_in = fan_in,
                       .maps = true});
    tensors.push_back({.name = names::bias(name),
                       .shape = {out},
                       .initial = Initial::fan_in_uniform,
                       .fan_in = fan_in});
  };
  map(names::score_convolution_first, score_hidden, score_channels(layer));
  map(names::score_convolution_last, layer.heads, score_hidden);
  return tensors;
}

template <class T>
ScoreConvolution<T>::ScoreConvolution(const AttentionBlock& block, const NodeContext<T>& nodes)
    : term_(*block.convolution),
      layout_(nodes.parameters.layout()),
      heads_(block.heads),
      n_(nodes.count()),
      real_(nodes.real_nodes),
      channels_(term_.channels),
      window_(term_.window),
      margin_(window_ / 2),
      causal_(block.causal),
      first_(window_ * channels_ * hidden),
      first_transposed_(first_.size()),
      last_(window_ * heads_ * hidden),
      last_transposed_(last_.size()),
      first_bias_(nodes.tensor(term_.first_bias)),
      last_bias_(nodes.tensor(term_.last_bias)) {
  for (int64_t i = 0; i < real_; ++i) {
    start_.push_back(places_);
    places_ += width(i) + 2 * margin_;
  }
  const T *first = nodes.tensor(term_.first), *last = nodes.tensor(term_.last);
  visit_weights(window_, channels_, [&](int64_t u, int64_t c, int64_t k, int64_t to) {
    first_[to] = first[(u * channels_ + c) * window_ + k];
    first_transposed_[(u * window_ + k) * channels_ + c] = first_[to];
  });
  visit_weights(window_, heads_, [&](int64_t u, int64_t h, int64_t k, int64_t to) {
    last_[to] = last[(h * hidden + u) * window_ + k];
    last_transposed_[(u * window_ + k) * heads_ + h] = last_[to];
  });
}

template <class T>
ScoreParts<T> ScoreConvolution<T>::mixed(const ScoreParts<T>& parts, const T* kept) const {
  ScoreParts<T> result = parts;
  result.query_key = nullptr;
  result.positions = kept;
  return result;
}

template <class T>
void ScoreConvolution<T>::forward(const ScoreParts<T>& parts, T* kept, Memory& memory) const {
  T *scores = kept, *z = kept + squares(), *u = z + places_ * channels_;
  make_scores(parts, false, scores, memory.transposed);
  const T* positions = parts.positions;
  std::fill_n(z, places_ * channels_, T(0));
  for (int64_t h = 0; h < heads_; ++h) {
    for (int64_t i = 0; i < real_; ++i) {
      T* row = z + (start_[i] + margin_) * channels_ + h;
      const int64_t at = (h * n_ + i) * n_;
      for (int64_t j = 0; j < scored(i); ++j) row[j * channels_] = scores[at + j];
      if (positions == nullptr) continue;
      for (int64_t j = 0; j < scored(i); ++j) row[j * channels_ + heads_] = positions[at + j];
    }
  }
  for (int64_t p = 0; p < pixels(); ++p) std::copy_n(first_bias_, hidden, u + p * hidden);
  generic::strided_product(pixels(), hidden, window_ * channels_, z, channels_, 1, first_.data(),
                           true, u);
  for (int64_t k = 0; k < pixels() * hidden; ++k) u[k] = std::max(u[k], slope * u[k]);
  const int64_t columns = window_ * heads_;
  memory.products.resize(pixels() * columns);
  generic::strided_product(pixels(), columns, hidden, u, hidden, 1, last_transposed_.data(), false,
                           memory.products.data());
  for (int64_t h = 0; h < heads_; ++h) {
    for (int64_t i = 0; i < n_; ++i) {
      T* row = scores + (h * n_ + i) * n_;
      const int64_t end = causal_ ? i + 1 : n_;
      if (positions != nullptr) {
        for (int64_t j = 0; j < end; ++j) row[j] += positions[(h * n_ + i) * n_ + j];
      }
      std::fill(row + end, row + n_, T(0));
      if (i >= real_) continue;
      for (int64_t j = 0; j < scored(i); ++j) row[j] += last_bias_[h];
      for (int64_t k = 0; k < window_; ++k) {
        const int64_t shift = k - margin_, from = std::max<int64_t>(0, -shift),
                      to = std::min(scored(i), width(i) - shift);
        int64_t place = (start_[i] + shift + from) * columns + k * heads_ + h;
        for (int64_t j = from; j < to; ++j, place += columns) row[j] += memory.products[place];
      }
    }
  }
}

template <class T>
void ScoreConvolution<T>::begin_backward(Memory& memory) const {
  memory.gradients.assign(first_.size() + hidden + last_.size() + heads_, T(0));
}

template <class T>
void ScoreConvolution<T>::backward(const ScoreParts<T>& parts, const T* kept, T* dscores,
                                   T* dquery_key, Memory& memory) const {
  const T *z = kept + squares(), *u = z + places_ * channels_;
  T *dfirst = memory.gradients.data(), *dfirst_bias = dfirst + first_.size();
  T *dlast = dfirst_bias + hidden, *dlast_bias = dlast + last_.size();
  const int64_t columns = window_ * heads_, inputs = window_ * channels_;
  std::vector<T>&dproducts = memory.products, &du = memory.hidden, &data = memory.data;
  dproducts.assign(pixels() * columns, T(0));
  for (int64_t h = 0; h < heads_; ++h) {
    for (int64_t i = 0; i < real_; ++i) {
      const T* row = dscores + (h * n_ + i) * n_;
      for (int64_t j = 0; j < scored(i); ++j) dlast_bias[h] += row[j];
      for (int64_t k = 0; k < window_; ++k) {
        const int64_t shift = k - margin_, from = std::max<int64_t>(0, -shift),
                      to = std::min(scored(i), width(i) - shift);
        int64_t place = (start_[i] + shift + from) * columns + k * heads_ + h;
        for (int64_t j = from; j < to; ++j, place += columns) dproducts[place] = row[j];
      }
    }
  }
  generic::strided_product(columns, hidden, pixels(), dproducts.data(), 1, columns, u, true, dlast);
  du.resize(pixels() * hidden);
  generic::strided_product(pixels(), hidden, columns, dproducts.data(), columns, 1, last_.data(),
                           false, du.data());
  T dbias[hidden] = {};
  for (int64_t p = 0; p < pixels(); ++p) {
    const T* of_u = u + p * hidden;
    T* of_du = du.data() + p * hidden;
    for (int64_t c = 0; c < hidden; ++c) {
      of_du[c] *= of_u[c] > 0 ? T(1) : slope;
      dbias[c] += of_du[c];
    }
  }
  for (int64_t c = 0; c < hidden; ++c) dfirst_bias[c] += dbias[c];
  generic::strided_product(inputs, hidden, pixels(), z, 1, channels_, du.data(), true, dfirst);
  // dZ of every place of a window, then their sums.
  dproducts.resize(pixels() * inputs);
  generic::strided_product(pixels(), inputs, hidden, du.data(), hidden, 1, first_transposed_.data(),
                           false, dproducts.data());
  data.assign(dscores, dscores + squares());
  for (int64_t c = 0; c < channels_; ++c) {
    T* d = c < heads_ ? data.data() : dscores;
    for (int64_t i = 0; i < real_; ++i) {
      T* row = d + (c % heads_ * n_ + i) * n_;
      for (int64_t k = 0; k < window_; ++k) {
        const int64_t first = start_[i] + margin_ - k;  // of key 0's window
        const int64_t from = std::max<int64_t>(0, -first),
                      to = std::min(scored(i), pixels() - first);
        int64_t place = (first + from) * inputs + k * channels_ + c;
        for (int64_t j = from; j < to; ++j, place += inputs) row[j] += dproducts[place];
      }
    }
  }
  scores_gradient(parts, data.data(), dquery_key);
}

template <class T>
void ScoreConvolution<T>::end_backward(const Memory& memory, T* sums) const {
  const auto tensor = [&](TensorId id) { return sums + layout_.tensors()[id].offset; };
  const T *dfirst = memory.gradients.data(), *dfirst_bias = dfirst + first_.size();
  const T *dlast = dfirst_bias + hidden, *dlast_bias = dlast + last_.size();
  T *first = tensor(term_.first), *last = tensor(term_.last);
  visit_weights(window_, channels_, [&](int64_t u, int64_t c, int64_t k, int64_t from) {
    first[(u * channels_ + c) * window_ + k] += dfirst[from];
  });
  visit_weights(window_, heads_, [&](int64_t u, int64_t h, int64_t k, int64_t from) {
    last[(h * hidden + u) * window_ + k] += dlast[from];
  });
  T *first_bias = tensor(term_.first_bias), *last_bias = tensor(term_.last_bias);
  for (int64_t u = 0; u < hidden; ++u) first_bias[u] += dfirst_bias[u];
  for (int64_t h = 0; h < heads_; ++h) last_bias[h] += dlast_bias[h];
}

template class ScoreConvolution<float>;
template class ScoreConvolution<double>;

}  // namespace posattn
