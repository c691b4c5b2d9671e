// One layer of a BlockNetwork: attention, MLP and normalisation, forward and backward. These are
// definitions for plan_network.cc, which includes them and instantiates the class.
#pragma once

#include <algorithm>

#include "posattn/kernels/generic/attention.h"
#include "posattn/kernels/generic/normalisation.h"
#include "posattn/kernels/generic/rows.h"
#include "posattn/model/blocks/activation.h"
#include "posattn/model/blocks/block_network.h"

namespace posattn {
namespace {

template <class T>
void add_to(const std::vector<T>& from, std::vector<T>& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

// One head's keys lie behind its queries, `row` numbers to a node.
generic::HeadShape key_shape(const AttentionBlock& block, int64_t nodes, int64_t row) {
  return {.causal = block.causal, .nodes = nodes, .size = block.key_size, .stride = row};
}
generic::HeadShape value_shape(const AttentionBlock& block, int64_t nodes) {
  return {.causal = block.causal,
          .nodes = nodes,
          .size = block.head_size,
          .stride = int64_t{1} * block.heads * block.head_size};
}

}  // namespace

template <class T>
void BlockNetwork<T>::normalise(const NormalisationBlock& block, int64_t rows,
                                const std::vector<T>& x, std::vector<T>& y) const {
  y.resize(x.size());
  generic::layer_norm(rows, spec_.width, x.data(), tensor(block.gain), tensor(block.shift),
                      y.data());
}

template <class T>
void BlockNetwork<T>::normalise_backward(const NormalisationBlock& block, int64_t rows,
                                         const std::vector<T>& x, std::vector<T>& d,
                                         Scratch& scratch, std::span<T> sums) const {
  scratch.dnorm.resize(x.size());
  generic::layer_norm_gradient(rows, spec_.width, x.data(), tensor(block.gain), d.data(),
                               scratch.dnorm.data(), gradient(sums, block.gain),
                               gradient(sums, block.shift));
  std::swap(d, scratch.dnorm);
}

template <class T>
void BlockNetwork<T>::forward_mlp(int layer, int64_t rows, const T* x, Layer& t, Scratch& scratch,
                                  std::vector<T>& out) const {
  const MlpBlock& block = plan_.layers[layer].mlp;
  const size_t maps = block.maps.size();
  t.maps.resize(maps - 1);
  for (size_t k = 0; k < maps; ++k) {
    std::vector<T>& y = k + 1 < maps ? t.maps[k] : out;
    y.resize(rows * block.maps[k].out);
    maps_.forward(block.maps[k], rows, k == 0 ? x : scratch.hidden.data(), y.data());
    if (k + 1 == maps) break;
    activate(block.activation, y, scratch.hidden);
    show(scratch, Activated::hidden, layer, scratch.hidden, static_cast<int>(k));
  }
  show(scratch, Activated::mlp_output, layer, out);
}

template <class T>
void BlockNetwork<T>::backward_mlp(const MlpBlock& block, int64_t rows, const T* x, const Layer& t,
                                   const T* dout, Scratch& scratch, std::vector<T>& dx,
                                   std::span<T> sums) const {
  scratch.dhidden.resize(block.maps.size() - 1);
  for (auto k = static_cast<int>(block.maps.size()) - 1; k >= 0; --k) {
    const LinearBlock& map = block.maps[k];
    std::vector<T>& din = k == 0 ? dx : scratch.dhidden[k - 1];
    din.resize(rows * map.in);
    maps_.input_gradient(map, rows, dout, false, din.data());
    if (k > 0) activate_gradient(block.activation, t.maps[k - 1], din, scratch.hidden);
    maps_.weight_gradient(map, rows, k == 0 ? x : scratch.hidden.data(), dout, sums.data());
    dout = din.data();
  }
}

template <class T>
void BlockNetwork<T>::make_query_key(const DataScores& kind, const AttentionBlock& block,
                                     int64_t rows, const T* attended, Layer& t) const {
  if (kind.positions_joined) join(rows, attended, spec_.width, true, t.source);
  t.query_key.resize(rows * kind.query_key.out);
  maps_.forward(kind.query_key, rows, source(kind, attended, t), t.query_key.data());
  if (kind.rope) {
    generic::rotate<T>(rows, 2 * block.heads, block.key_size, nodes_->index, 1, t.query_key.data());
  }
}

template <class T>
void BlockNetwork<T>::query_key_backward(const DataScores& kind, const AttentionBlock& block,
                                         int64_t rows, const T* attended, const Layer& t,
                                         Scratch& scratch, T* dattended, std::span<T> sums) const {
  T* d = scratch.dquery_key.data();
  if (kind.rope) generic::rotate<T>(rows, 2 * block.heads, block.key_size, nodes_->index, -1, d);
  if (!kind.positions_joined) {
    return maps_.backward(kind.query_key, rows, attended, d, sums.data(), true, dattended);
  }
  scratch.dsource.resize(t.source.size());
  maps_.backward(kind.query_key, rows, t.source.data(), d, sums.data(), false,
                 scratch.dsource.data());
  split(rows, scratch.dsource, spec_.width, true, dattended, sums);
}

template <class T>
void BlockNetwork<T>::attend(int layer, int samples, const T* attended, Layer& t,
                             Scratch& scratch) const {
  const AttentionBlock& block = plan_.layers[layer].attention;
  const int64_t n = nodes(), rows = samples * n, d = spec_.width;
  t.value.resize(rows * d);
  t.mixed.resize(rows * d);
  maps_.forward(block.value, rows, attended, t.value.data());
  show(scratch, Activated::values, layer, t.value);
  const auto* from_data = std::get_if<DataScores>(&block.scores);
  const int64_t row = from_data ? from_data->query_key.out : 0;
  if (from_data) make_query_key(*from_data, block, rows, attended, t);
  const bool own = from_data != nullptr || scratch.hook != nullptr;  // each sample has its matrices
  if (own) t.attention.resize(samples * block.heads * n * n);
  const generic::HeadShape keys = key_shape(block, n, row), values = value_shape(block, n);
  const auto matrix = [&](int64_t s, int64_t h) {
    return &t.attention[(s * block.heads + h) * n * n];
  };
  const auto mix = [&](int64_t s, int64_t h) {
    const int64_t at = s * n * d + h * values.size;
    generic::mix(values, own ? matrix(s, h) : &shared_[layer][h * n * n], &t.value[at],
                 &t.mixed[at]);
  };
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t h = 0; h < block.heads; ++h) {
      if (from_data) {
        const T* query = &t.query_key[s * n * row + h * 2 * keys.size];
        generic::attention_matrix(keys, query, query + keys.size, matrix(s, h), scratch.transposed);
      } else if (own) {
        std::copy_n(&shared_[layer][h * n * n], n * n, matrix(s, h));
      }
      if (scratch.hook == nullptr) mix(s, h);  // while the matrix is in the cache
    }
  }
  if (scratch.hook == nullptr) return;
  show(scratch, Activated::attention, layer, t.attention);
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t h = 0; h < block.heads; ++h) mix(s, h);
  }
  show(scratch, Activated::heads, layer, t.mixed);
}

template <class T>
void BlockNetwork<T>::attend_backward(int layer, int samples, const T* attended, Layer& t,
                                      Scratch& scratch, bool accumulate, T* dattended,
                                      std::span<T> sums) const {
  const AttentionBlock& block = plan_.layers[layer].attention;
  const int64_t n = nodes(), rows = samples * n, d = spec_.width;
  const auto* from_data = std::get_if<DataScores>(&block.scores);
  const int64_t row = from_data ? from_data->query_key.out : 0;
  scratch.dvalue.resize(rows * d);
  scratch.da.resize(from_data ? n * n : 0);
  scratch.dquery_key.resize(rows * row);
  const generic::HeadShape keys = key_shape(block, n, row), values = value_shape(block, n);
  T* shared_sums = sums.data() + attention_offset(layer);
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t h = 0; h < block.heads; ++h) {
      const int64_t at = s * n * d + h * values.size;
      const T* a = from_data ? &t.attention[(s * block.heads + h) * n * n]
                             : shared_[layer].data() + h * n * n;
      T* da = from_data ? scratch.da.data() : shared_sums + h * n * n;
      generic::mix_gradient(values, a, &t.value[at], &scratch.dmixed[at], &scratch.dvalue[at],
                            !from_data, da, scratch.transposed);
      if (!from_data) continue;
      const int64_t place = s * n * row + h * 2 * keys.size;
      const T* query = &t.query_key[place];
      T* dquery = &scratch.dquery_key[place];
      generic::attention_matrix_gradient(keys, query, query + keys.size, a, da, dquery,
                                         dquery + keys.size);
    }
  }
  maps_.backward(block.value, rows, attended, scratch.dvalue.data(), sums.data(), accumulate,
                 dattended);
  if (from_data) query_key_backward(*from_data, block, rows, attended, t, scratch, dattended, sums);
}

template <class T>
void BlockNetwork<T>::forward_layer(int layer, int samples, BlockTape<T>& tape) const {
  const LayerBlock& block = plan_.layers[layer];
  Layer& t = tape.layers[layer];
  const int64_t rows = int64_t{samples} * nodes(), d = spec_.width;
  const bool before = block.when == Normalisation::before,
             after = block.when == Normalisation::after;
  std::vector<T>& next = layer + 1 < spec_.depth ? tape.layers[layer + 1].x : tape.decoder_input;
  if (before) normalise(*block.attention_norm, rows, t.x, t.attended);
  const std::vector<T>& attended = before ? t.attended : t.x;
  attend(layer, samples, attended.data(), t, tape.scratch);
  std::vector<T>& o = tape.scratch.o;
  o.resize(rows * d);
  maps_.forward(block.attention.output, rows, t.mixed.data(), o.data());
  show(tape.scratch, Activated::attention_output, layer, o);

  if (block.join == Join::concatenate) {
    t.joined.resize(rows * 2 * d);
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(&attended[r * d], d, &t.joined[r * 2 * d]);
      std::copy_n(&o[r * d], d, &t.joined[r * 2 * d + d]);
    }
    forward_mlp(layer, rows, t.joined.data(), t, tape.scratch, after ? t.output : next);
    if (after) normalise(*block.attention_norm, rows, t.output, next);
    return show(tape.scratch, Activated::state, layer, next);
  }
  std::vector<T>& sum = after ? t.sum : t.joined;
  sum = t.x;
  add_to(o, sum);
  if (after) normalise(*block.attention_norm, rows, t.sum, t.joined);
  if (before) normalise(*block.mlp_norm, rows, t.joined, t.mlp_input);
  std::vector<T>& out = after ? t.output : next;
  forward_mlp(layer, rows, (before ? t.mlp_input : t.joined).data(), t, tape.scratch, out);
  add_to(t.joined, out);
  if (after) normalise(*block.mlp_norm, rows, t.output, next);
  show(tape.scratch, Activated::state, layer, next);
}

template <class T>
void BlockNetwork<T>::backward_layer(int layer, int samples, BlockTape<T>& tape, std::vector<T>& dx,
                                     std::span<T> sums) const {
  const LayerBlock& block = plan_.layers[layer];
  Layer& t = tape.layers[layer];
  Scratch& scratch = tape.scratch;
  const int64_t rows = int64_t{samples} * nodes(), d = spec_.width;
  const bool before = block.when == Normalisation::before,
             after = block.when == Normalisation::after;
  const T* attended = (before ? t.attended : t.x).data();
  scratch.dmixed.resize(rows * d);
  const auto mixed_backward = [&](const std::vector<T>& d_o) {
    maps_.backward(block.attention.output, rows, t.mixed.data(), d_o.data(), sums.data(), false,
                   scratch.dmixed.data());
  };

  if (block.join == Join::concatenate) {
    if (after) normalise_backward(*block.attention_norm, rows, t.output, dx, scratch, sums);
    backward_mlp(block.mlp, rows, t.joined.data(), t, dx.data(), scratch, scratch.djoined, sums);
    scratch.o.resize(rows * d);
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(&scratch.djoined[r * 2 * d], d, &dx[r * d]);
      std::copy_n(&scratch.djoined[r * 2 * d + d], d, &scratch.o[r * d]);
    }
    mixed_backward(scratch.o);
    attend_backward(layer, samples, attended, t, scratch, true, dx.data(), sums);
    if (before) normalise_backward(*block.attention_norm, rows, t.x, dx, scratch, sums);
    return;
  }
  if (after) normalise_backward(*block.mlp_norm, rows, t.output, dx, scratch, sums);
  backward_mlp(block.mlp, rows, (before ? t.mlp_input : t.joined).data(), t, dx.data(), scratch,
               scratch.dmlp, sums);
  if (before) normalise_backward(*block.mlp_norm, rows, t.joined, scratch.dmlp, scratch, sums);
  add_to(scratch.dmlp, dx);  // d joined
  if (after) normalise_backward(*block.attention_norm, rows, t.sum, dx, scratch, sums);
  mixed_backward(dx);
  if (!before) {  // what goes past attention stays in dx
    return attend_backward(layer, samples, attended, t, scratch, true, dx.data(), sums);
  }
  scratch.dattended.resize(rows * d);
  attend_backward(layer, samples, attended, t, scratch, false, scratch.dattended.data(), sums);
  normalise_backward(*block.attention_norm, rows, t.x, scratch.dattended, scratch, sums);
  add_to(scratch.dattended, dx);
}

}  // namespace posattn
