// One layer of a PlanNetwork: attention, MLP and normalisation, forward and backward.
#include <algorithm>

#include "posattn/kernels/plain/product.h"
#include "posattn/kernels/plain/rows.h"
#include "posattn/model/plan/linear.h"
#include "posattn/model/plan/plan_network.h"

namespace posattn {
namespace {

template <class T>
void activate(Activation activation, const std::vector<T>& x, std::vector<T>& y) {
  const auto count = static_cast<int64_t>(x.size());
  y.resize(x.size());
  switch (activation) {
    case Activation::relu:
      return plain::relu(count, x.data(), y.data());
    case Activation::gelu:
      return plain::gelu(count, x.data(), y.data());
    case Activation::gelu_tanh:
      return plain::gelu_tanh(count, x.data(), y.data());
  }
}

template <class T>
void activate_gradient(Activation activation, const std::vector<T>& x, std::vector<T>& dy) {
  const auto count = static_cast<int64_t>(x.size());
  switch (activation) {
    case Activation::relu:
      return plain::relu_gradient(count, x.data(), dy.data(), dy.data());
    case Activation::gelu:
      return plain::gelu_gradient(count, x.data(), dy.data(), dy.data());
    case Activation::gelu_tanh:
      return plain::gelu_tanh_gradient(count, x.data(), dy.data(), dy.data());
  }
}

template <class T>
void add_to(const std::vector<T>& from, std::vector<T>& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

}  // namespace

template <class T>
void PlanNetwork<T>::normalise(const NormalisationBlock& block, int64_t rows,
                               const std::vector<T>& x, std::vector<T>& y) const {
  y.resize(x.size());
  plain::layer_norm(rows, spec_.width, x.data(), tensor(block.gain), tensor(block.shift), y.data());
}

template <class T>
std::vector<T> PlanNetwork<T>::normalise_backward(const NormalisationBlock& block, int64_t rows,
                                                  const std::vector<T>& x, const std::vector<T>& dy,
                                                  std::span<T> sums) const {
  std::vector<T> dx(x.size());
  plain::layer_norm_gradient(rows, spec_.width, x.data(), tensor(block.gain), dy.data(), dx.data(),
                             gradient(sums, block.gain), gradient(sums, block.shift));
  return dx;
}

template <class T>
void PlanNetwork<T>::forward_mlp(const MlpBlock& block, int64_t rows, const T* x,
                                 typename PlanTape<T>::Layer& t, std::vector<T>& out) const {
  const size_t maps = block.maps.size();
  t.maps.resize(maps - 1);
  t.hidden.resize(maps - 1);
  for (size_t k = 0; k < maps; ++k) {
    std::vector<T>& y = k + 1 < maps ? t.maps[k] : out;
    y.resize(rows * block.maps[k].out);
    linear(block.maps[k], nodes_->parameters, rows, k == 0 ? x : t.hidden[k - 1].data(), y.data());
    if (k + 1 < maps) activate(block.activation, y, t.hidden[k]);
  }
}

template <class T>
std::vector<T> PlanNetwork<T>::backward_mlp(const MlpBlock& block, int64_t rows, const T* x,
                                            typename PlanTape<T>::Layer& t, std::vector<T> dout,
                                            std::span<T> sums) const {
  for (auto k = static_cast<int>(block.maps.size()) - 1; k >= 0; --k) {
    const LinearBlock& map = block.maps[k];
    std::vector<T> din(rows * map.in);
    linear_gradient(map, nodes_->parameters, rows, k == 0 ? x : t.hidden[k - 1].data(), dout.data(),
                    din.data(), sums.data());
    if (k > 0) activate_gradient(block.activation, t.maps[k - 1], din);
    dout = std::move(din);
  }
  return dout;
}

template <class T>
void PlanNetwork<T>::score_data(const DataScores& kind, int layer, int samples, const T* heard,
                                typename PlanTape<T>::Layer& t) const {
  const AttentionBlock& block = plan_.layers[layer].attention;
  const int64_t n = nodes(), rows = samples * n, size = block.heads * n * n;
  join(rows, heard, spec_.width, kind.positions_joined, t.source);
  t.query_key.resize(rows * kind.query_key.out);
  linear(kind.query_key, nodes_->parameters, rows, t.source.data(), t.query_key.data());
  if (kind.rope) {
    plain::rotate<T>(rows, 2 * block.heads, block.key_size, nodes_->index, 1, t.query_key.data());
  }
  t.attention.resize(samples * size);
  for (int64_t s = 0; s < samples; ++s) {
    query_key_scores(block.heads, block.key_size, static_cast<int>(n),
                     t.query_key.data() + s * n * kind.query_key.out, &t.attention[s * size]);
  }
  for (int64_t m = 0; block.causal && m < samples * block.heads; ++m) {
    plain::mask_causal(n, &t.attention[m * n * n]);
  }
  plain::softmax_rows(samples * block.heads * n, n, t.attention.data());
}

template <class T>
void PlanNetwork<T>::score_data_backward(const DataScores& kind, int layer, int samples,
                                         typename PlanTape<T>::Layer& t, std::vector<T>& dscores,
                                         std::vector<T>& dheard, std::span<T> sums) const {
  const AttentionBlock& block = plan_.layers[layer].attention;
  const int64_t n = nodes(), rows = samples * n, size = block.heads * n * n;
  plain::softmax_rows_gradient(samples * block.heads * n, n, t.attention.data(), dscores.data());
  std::vector<T> dquery_key(t.query_key.size()), dsource(t.source.size());
  for (int64_t s = 0; s < samples; ++s) {
    const int64_t at = s * n * kind.query_key.out;
    query_key_scores_gradient(block.heads, block.key_size, static_cast<int>(n), &t.query_key[at],
                              &dscores[s * size], &dquery_key[at]);
  }
  if (kind.rope) {
    plain::rotate<T>(rows, 2 * block.heads, block.key_size, nodes_->index, -1, dquery_key.data());
  }
  linear_gradient(kind.query_key, nodes_->parameters, rows, t.source.data(), dquery_key.data(),
                  dsource.data(), sums.data());
  split(rows, dsource, spec_.width, kind.positions_joined, dheard.data(), sums);
}

template <class T>
void PlanNetwork<T>::attend(int layer, int samples, const T* heard,
                            typename PlanTape<T>::Layer& t) const {
  const AttentionBlock& block = plan_.layers[layer].attention;
  const int64_t n = nodes(), rows = samples * n, d = spec_.width, size = block.head_size;
  t.value.resize(rows * d);
  t.mixed.resize(rows * d);
  linear(block.value, nodes_->parameters, rows, heard, t.value.data());
  const auto* from_data = std::get_if<DataScores>(&block.scores);
  if (from_data) score_data(*from_data, layer, samples, heard, t);
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t h = 0; h < block.heads; ++h) {
      const T* a =
          from_data ? &t.attention[(s * block.heads + h) * n * n] : &shared_[layer][h * n * n];
      const int64_t at = s * n * d + h * size;
      plain::product(false, false, n, size, n, T(1), a, n, &t.value[at], d, false, &t.mixed[at], d);
    }
  }
}

template <class T>
void PlanNetwork<T>::attend_backward(int layer, int samples, const T* heard,
                                     typename PlanTape<T>::Layer& t, const std::vector<T>& dmixed,
                                     std::vector<T>& dheard, std::span<T> sums) const {
  const AttentionBlock& block = plan_.layers[layer].attention;
  const int64_t n = nodes(), rows = samples * n, d = spec_.width, size = block.head_size;
  const auto* from_data = std::get_if<DataScores>(&block.scores);
  std::vector<T> dvalue(t.value.size()), dscores(from_data ? t.attention.size() : 0);
  T* shared_sums = sums.data() + attention_offset(layer);
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t h = 0; h < block.heads; ++h) {
      const int64_t of_sample = (s * block.heads + h) * n * n, at = s * n * d + h * size;
      const T* a = from_data ? &t.attention[of_sample] : &shared_[layer][h * n * n];
      T* da = from_data ? &dscores[of_sample] : shared_sums + h * n * n;
      plain::product(true, false, n, size, n, T(1), a, n, &dmixed[at], d, false, &dvalue[at], d);
      plain::product(false, true, n, n, size, T(1), &dmixed[at], d, &t.value[at], d, true, da, n);
    }
  }
  linear_gradient(block.value, nodes_->parameters, rows, heard, dvalue.data(), dheard.data(),
                  sums.data());
  if (from_data) score_data_backward(*from_data, layer, samples, t, dscores, dheard, sums);
}

template <class T>
void PlanNetwork<T>::forward_layer(int layer, int samples, PlanTape<T>& tape) const {
  const LayerBlock& block = plan_.layers[layer];
  typename PlanTape<T>::Layer& t = tape.layers[layer];
  const int64_t rows = int64_t{samples} * nodes(), d = spec_.width;
  const bool before = block.when == Normalisation::before,
             after = block.when == Normalisation::after;
  std::vector<T>& next = layer + 1 < spec_.depth ? tape.layers[layer + 1].x : tape.decoder_input;
  if (before) normalise(*block.attention_norm, rows, t.x, t.heard);
  const std::vector<T>& heard = before ? t.heard : t.x;
  attend(layer, samples, heard.data(), t);
  std::vector<T> o(rows * d);
  linear(block.attention.output, nodes_->parameters, rows, t.mixed.data(), o.data());

  if (block.join == Join::concatenate) {
    t.joined.resize(rows * 2 * d);
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(&heard[r * d], d, &t.joined[r * 2 * d]);
      std::copy_n(&o[r * d], d, &t.joined[r * 2 * d + d]);
    }
    forward_mlp(block.mlp, rows, t.joined.data(), t, after ? t.output : next);
    if (after) normalise(*block.attention_norm, rows, t.output, next);
    return;
  }
  std::vector<T>& sum = after ? t.sum : t.joined;
  sum = t.x;
  add_to(o, sum);
  if (after) normalise(*block.attention_norm, rows, t.sum, t.joined);
  if (before) normalise(*block.mlp_norm, rows, t.joined, t.mlp_input);
  std::vector<T>& out = after ? t.output : next;
  forward_mlp(block.mlp, rows, (before ? t.mlp_input : t.joined).data(), t, out);
  add_to(t.joined, out);
  if (after) normalise(*block.mlp_norm, rows, t.output, next);
}

template <class T>
void PlanNetwork<T>::backward_layer(int layer, int samples, PlanTape<T>& tape, std::vector<T>& dx,
                                    std::span<T> sums) const {
  const LayerBlock& block = plan_.layers[layer];
  typename PlanTape<T>::Layer& t = tape.layers[layer];
  const int64_t rows = int64_t{samples} * nodes(), d = spec_.width;
  const bool before = block.when == Normalisation::before,
             after = block.when == Normalisation::after, added = block.join == Join::add;
  const std::vector<T>& heard = before ? t.heard : t.x;
  std::vector<T> d_o(rows * d), dheard(rows * d), dcarried;

  if (added) {
    if (after) dx = normalise_backward(*block.mlp_norm, rows, t.output, dx, sums);
    std::vector<T> dmlp =
        backward_mlp(block.mlp, rows, (before ? t.mlp_input : t.joined).data(), t, dx, sums);
    if (before) dmlp = normalise_backward(*block.mlp_norm, rows, t.joined, dmlp, sums);
    add_to(dmlp, dx);  // d joined
    if (after) dx = normalise_backward(*block.attention_norm, rows, t.sum, dx, sums);
    d_o = dx;
    dcarried = dx;  // what goes past attention to x
  } else {
    if (after) {
      dx = normalise_backward(*block.attention_norm, rows, t.output, dx, sums);
    }
    const std::vector<T> djoined = backward_mlp(block.mlp, rows, t.joined.data(), t, dx, sums);
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(&djoined[r * 2 * d], d, &dheard[r * d]);
      std::copy_n(&djoined[r * 2 * d + d], d, &d_o[r * d]);
    }
  }
  std::vector<T> dmixed(rows * d);
  linear_gradient(block.attention.output, nodes_->parameters, rows, t.mixed.data(), d_o.data(),
                  dmixed.data(), sums.data());
  attend_backward(layer, samples, heard.data(), t, dmixed, dheard, sums);
  dx = before ? normalise_backward(*block.attention_norm, rows, t.x, dheard, sums)
              : std::move(dheard);
  if (added) add_to(dcarried, dx);
}

template class PlanNetwork<float>;
template class PlanNetwork<double>;

}  // namespace posattn
