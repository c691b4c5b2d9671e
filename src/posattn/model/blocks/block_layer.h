// One layer of a BlockNetwork: attention, MLP and normalisation, forward and backward. These are
// definitions for block_network.cc, which includes them and instantiates the class.
#pragma once

#include <algorithm>
#include <cmath>

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

generic::HeadShape value_shape(const AttentionBlock& block, int64_t nodes, int head_size) {
  return {.causal = block.causal,
          .nodes = nodes,
          .size = head_size,
          .stride = int64_t{1} * block.heads * head_size};
}

// y = [a | b] by rows; and back: da, db += or = the columns of d.
template <class T>
void join_columns(int64_t rows, int64_t of_a, const T* a, int64_t of_b, const T* b,
                  std::vector<T>& y) {
  y.resize(rows * (of_a + of_b));
  T* next = y.data();
  for (int64_t r = 0; r < rows; ++r) {
    next = std::copy_n(a + r * of_a, of_a, next);
    next = std::copy_n(b + r * of_b, of_b, next);
  }
}
template <class T>
void split_columns(int64_t rows, int64_t of_a, T* da, int64_t of_b, T* db, const T* d) {
  for (int64_t r = 0; r < rows; ++r, d += of_a + of_b) {
    for (int64_t c = 0; c < of_a; ++c) da[r * of_a + c] += d[c];
    std::copy_n(d + of_a, of_b, db + r * of_b);
  }
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
  const MlpBlock& block = block_of(layer).mlp;
  const size_t maps = block.maps.size();
  t.maps.resize(maps - 1);
  for (size_t k = 0; k < maps; ++k) {
    std::vector<T>& y = k + 1 < maps ? t.maps[k] : out;
    y.resize(rows * block.maps[k].out);
    maps_.forward(block.maps[k], rows, k == 0 ? x : scratch.hidden.data(), y.data());
    if (k + 1 == maps) break;
    if (block.maps[k].neurons.gain != no_tensor) {
      scratch.hidden = y;
      fire(block.maps[k].neurons, rows, scratch.hidden, y);
    } else {
      activate(block.activation, y, scratch.hidden);
    }
    show(scratch, Activated::hidden, layer, scratch.hidden, static_cast<int>(k));
  }
  fire(block.maps.back().neurons, rows, out, t.currents.mlp);
  show(scratch, Activated::mlp_output, layer, out);
}

template <class T>
void BlockNetwork<T>::backward_mlp(const MlpBlock& block, int64_t rows, const T* x, const Layer& t,
                                   const T* dout, Scratch& scratch, std::vector<T>& dx,
                                   std::span<T> sums) const {
  scratch.dhidden.resize(block.maps.size() - 1);
  dout = fire_backward_of(block.maps.back().neurons, rows, t.currents.mlp, dout, scratch, sums);
  for (auto k = static_cast<int>(block.maps.size()) - 1; k >= 0; --k) {
    const LinearBlock& map = block.maps[k];
    std::vector<T>& din = k == 0 ? dx : scratch.dhidden[k - 1];
    din.resize(rows * map.in);
    maps_.input_gradient(map, rows, dout, false, din.data());
    if (k > 0 && block.maps[k - 1].neurons.gain != no_tensor) {
      fire_backward(block.maps[k - 1].neurons, rows, t.maps[k - 1], din.data(), scratch, sums);
      std::swap(scratch.hidden, scratch.spikes);
    } else if (k > 0) {
      activate_gradient(block.activation, t.maps[k - 1], din, scratch.hidden);
    }
    maps_.weight_gradient(map, rows, k == 0 ? x : scratch.hidden.data(), dout, sums.data());
    dout = din.data();
  }
}

template <class T>
ScoreParts<T> BlockNetwork<T>::score_parts(int layer, const T* query_key,
                                           const T* positions) const {
  const AttentionBlock& block = block_of(layer).attention;
  ScoreParts<T> parts;
  parts.block = &block;
  parts.heads = block.heads;
  if (block.weighting_tensor != no_tensor) parts.tensor = tensor(block.weighting_tensor);
  parts.keys.causal = block.causal;
  parts.keys.nodes = nodes();
  if (block.data) {
    const DataTerm& term = *block.data;
    parts.keys.size = has_features(block) ? block.features : term.key_size;
    parts.keys.stride = key_row(block);
    parts.keys.factor = has_features(block) ? 1 : term.factor;
    parts.query_key = query_key;
    parts.data = &row_of(term.scores);
  }
  parts.positions = positions;
  return parts;
}

template <class T>
SamplePairs<T> BlockNetwork<T>::pairs_of(int64_t sample, const Scratch& scratch) const {
  const int64_t real = nodes_->real_nodes, all = scratch.first + sample;
  const auto part = [&](auto values, int64_t columns) {
    return columns == 0 ? values.first(0)
                        : values.subspan(all * real * real * columns, real * real * columns);
  };
  return {part(scratch.pairs, spec_.pair_columns),
          part(scratch.pair_classes, spec_.pair_classes > 0 ? 1 : 0)};
}

template <class T>
const T* BlockNetwork<T>::fixed_scores(int layer, int64_t sample, Scratch& scratch) const {
  const AttentionBlock& block = block_of(layer).attention;
  const bool of_pairs = scores_pairs(block);
  if (!of_pairs && block.pair_mask == PairMask::none) {
    return block.positions ? shared(layer).data() : nullptr;
  }
  const SamplePairs<T> pairs = pairs_of(sample, scratch);
  std::vector<T>& scores = scratch.fixed;
  scores.assign(int64_t{1} * block.heads * nodes() * nodes(), T(0));
  if (of_pairs) {
    row_of(block.positions->kind)
        .template in<T>()
        .scores_of_pairs(*block.positions, block.heads, *nodes_, pairs, scores.data());
  } else if (block.positions) {
    scores = shared(layer);
  }
  mask_pairs(block.pair_mask, block.heads, *nodes_, pairs, scores.data());
  return scores.data();
}

template <class T>
const T* BlockNetwork<T>::make_source(const DataTerm& term, int64_t rows, const T* attended,
                                      Layer& t) const {
  if (const ScaleRow* scale = row_of(term.scale)) {
    const int64_t d = spec_.width, part = scale->part(nodes(), d);
    t.scaled.assign(attended, attended + rows * d);
    t.scaled_inverse.resize(rows * d / part);
    const T norm = std::sqrt(static_cast<T>(part));
    for (size_t k = 0; k < t.scaled_inverse.size(); ++k) {
      t.scaled_inverse[k] = generic::to_norm(part, norm, &t.scaled[k * part]);
    }
    attended = t.scaled.data();
  }
  if (term.values_joined > 0) {
    join_columns(rows, spec_.width, attended, term.values_joined, t.unit.data(), t.joined_source);
    attended = t.joined_source.data();
  }
  if (!term.positions_joined) return attended;
  join(rows, attended, spec_.width + term.values_joined, true, t.source);
  return t.source.data();
}

template <class T>
void BlockNetwork<T>::source_backward(const DataTerm& term, int64_t rows, const Layer& t,
                                      Scratch& scratch, T* dattended, std::span<T> sums) const {
  const ScaleRow* scale = row_of(term.scale);
  const int64_t d = spec_.width;
  if (const int joined = term.values_joined; joined > 0) {
    const T* dsource = scratch.dsource.data();
    if (term.positions_joined) {
      scratch.dscaled.assign(rows * (d + joined), T(0));
      split(rows, scratch.dsource, static_cast<int>(d) + joined, true, scratch.dscaled.data(),
            sums);
      dsource = scratch.dscaled.data();
    }
    return split_columns(rows, d, dattended, joined, scratch.dunit.data(), dsource);
  }
  T* dscaled = dattended;
  if (scale != nullptr && term.positions_joined) {
    scratch.dscaled.assign(rows * d, T(0));
    dscaled = scratch.dscaled.data();
  } else if (scale != nullptr) {
    dscaled = scratch.dsource.data();
  }
  if (term.positions_joined) split(rows, scratch.dsource, d, true, dscaled, sums);
  if (scale == nullptr) return;
  const int64_t part = scale->part(nodes(), d);
  const T norm = std::sqrt(static_cast<T>(part));
  for (size_t k = 0; k < t.scaled_inverse.size(); ++k) {
    generic::to_norm_gradient(part, norm, t.scaled_inverse[k], &t.scaled[k * part],
                              dscaled + k * part);
  }
  for (int64_t i = 0; i < rows * d; ++i) dattended[i] += dscaled[i];
}

template <class T>
void BlockNetwork<T>::make_query_key(int layer, int64_t rows, const T* attended, Layer& t) const {
  const AttentionBlock& block = block_of(layer).attention;
  const DataTerm& term = *block.data;
  const DataRow& row = row_of(term.scores);
  t.query_key.resize(rows * term.query_key.out);
  maps_.forward(term.query_key, rows, make_source(term, rows, attended, t), t.query_key.data());
  fire(term.query_key.neurons, rows, t.query_key, t.currents.query_key);
  if (term.rope) {
    generic::rotate<T>(rows, 2 * block.heads, term.key_size, nodes_->place, 1, t.query_key.data());
  }
  t.keys_kept.resize(rows * block.heads * 2 * (row.keeps_each ? term.key_size : 1));
  if (row.changes_keys) {
    row.in<T>().prepare(rows, block.heads, term.key_size, head_scale(term), t.query_key.data(),
                        t.keys_kept.data());
  }
  if (!has_features(block)) return;
  t.features.resize(rows * key_row(block));
  row_of(block.weighting)
      .template in<T>()
      .features(score_parts(layer, nullptr, nullptr), rows, t.query_key.data(), t.keys_kept.data(),
                t.features.data());
}

template <class T>
void BlockNetwork<T>::query_key_backward(int layer, int64_t rows, const T* attended, const Layer& t,
                                         Scratch& scratch, T* dattended, std::span<T> sums) const {
  const AttentionBlock& block = block_of(layer).attention;
  const DataTerm& term = *block.data;
  const DataRow& row = row_of(term.scores);
  T* d = scratch.dquery_key.data();
  if (has_features(block)) {
    row_of(block.weighting)
        .template in<T>()
        .features_gradient(score_parts(layer, nullptr, nullptr), rows, t.query_key.data(),
                           t.keys_kept.data(), t.features.data(), scratch.dfeatures.data(), d);
  }
  if (row.changes_keys) {
    row.in<T>().gradient(rows, block.heads, term.key_size, head_scale(term), t.query_key.data(),
                         t.keys_kept.data(), d,
                         term.head_scale == no_tensor ? nullptr : gradient(sums, term.head_scale));
  }
  if (term.rope) {
    generic::rotate<T>(rows, 2 * block.heads, term.key_size, nodes_->place, -1, d);
  }
  fire_backward(term.query_key.neurons, rows, t.currents.query_key, d, scratch, sums);
  const bool scaled = term.scale != SourceScale::none;
  if (!term.positions_joined && !scaled && term.values_joined == 0) {
    return maps_.backward(term.query_key, rows, attended, d, sums.data(), true, dattended);
  }
  scratch.dsource.resize(rows * term.query_key.in);
  const T* source = term.positions_joined    ? t.source.data()
                    : term.values_joined > 0 ? t.joined_source.data()
                                             : t.scaled.data();
  maps_.backward(term.query_key, rows, source, d, sums.data(), false, scratch.dsource.data());
  source_backward(term, rows, t, scratch, dattended, sums);
}

template <class T>
std::vector<typename BlockNetwork<T>::MixedPart> BlockNetwork<T>::mixed_parts(
    int layer, int samples, Layer& t, Scratch& scratch) const {
  const LayerBlock& block = block_of(layer);
  const AttentionBlock& attention = block.attention;
  std::vector<MixedPart> parts;
  if (attention.mixes()) {
    parts.push_back({value_shape(attention, nodes(), attention.head_size), 1, t.value.data(),
                     t.mixed.data(), scratch.dmixed.data(), scratch.dvalue.data()});
  }
  if (block.values) {
    parts.push_back({value_shape(attention, nodes(), block.values->head_size),
                     samples / symbol_samples(samples, scratch), t.stream_value.data(),
                     t.stream_mixed.data(), scratch.dstream_mixed.data(),
                     scratch.dstream_value.data()});
  }
  return parts;
}

template <class T>
void BlockNetwork<T>::attend(int layer, int all_samples, const T* attended, Layer& t,
                             Scratch& scratch) const {
  const AttentionBlock& block = block_of(layer).attention;
  const int samples = symbol_samples(all_samples, scratch);  // that have attention of their own
  const int64_t n = nodes(), rows = samples * n, matrices = block.heads * n * n;
  if (block.mixes()) {
    t.value.resize(rows * spec_.width);
    t.mixed.resize(rows * spec_.width);
    maps_.forward(block.value, rows, attended, t.value.data());
    fire(block.value.neurons, rows, t.value, t.currents.value);
    show(scratch, Activated::values, layer, t.value);
  }
  if (const auto& values = block_of(layer).values) {
    t.stream_value.resize(t.v.size());
    t.stream_mixed.resize(t.v.size());
    maps_.forward(values->value, all_samples * n, t.v.data(), t.stream_value.data());
  }
  const std::vector<MixedPart> mixed = mixed_parts(layer, all_samples, t, scratch);
  if (block.data) make_query_key(layer, rows, attended, t);
  const std::vector<T>& keys = has_features(block) ? t.features : t.query_key;
  const int64_t row = key_row(block);
  if (const LongMixing<T>* mixing = long_mixing(layer)) {
    for (int64_t s = 0; s < samples; ++s) {
      const ScoreParts<T> parts = score_parts(layer, &keys[s * n * row], nullptr);
      for (const MixedPart& part : mixed) {
        for (int64_t k = s * part.samples; k < (s + 1) * part.samples; ++k) {
          const int64_t at = k * n * part.shape.stride;
          mixing->mix(parts, part.shape, part.value + at, part.mixed + at);
        }
      }
    }
    return;
  }
  const auto& weighting = row_of(block.weighting);
  const bool own = per_sample(block) || scratch.hook != nullptr;  // each sample has its matrices
  const ScoreConvolution<T>* convolution = this->convolution(layer);
  if (convolution) t.convolution_kept.resize(samples * convolution->kept_size());
  if (own) t.attention.resize(samples * matrices);
  if (own && weighting.keeps) t.weights_kept.resize(samples * matrices);
  const auto& own_mix = weighting.template in<T>().mix;
  const auto mix_one = [&](const auto&... operands) {
    own_mix != nullptr ? own_mix(operands...) : generic::mix(operands...);
  };
  const auto mix = [&](int64_t s) {
    const T* a = own ? &t.attention[s * matrices] : shared(layer).data();
    for (const MixedPart& part : mixed) {
      for (int64_t k = s * part.samples; k < (s + 1) * part.samples; ++k) {
        for (int64_t h = 0; h < block.heads; ++h) {
          const int64_t at = k * n * part.shape.stride + h * part.shape.size;
          mix_one(part.shape, a + h * n * n, part.value + at, part.mixed + at);
        }
      }
    }
  };
  for (int64_t s = 0; s < samples; ++s) {
    if (per_sample(block)) {
      ScoreParts<T> parts = score_parts(layer, block.data ? &keys[s * n * row] : nullptr,
                                        fixed_scores(layer, s, scratch));
      if (convolution) {
        T* kept = &t.convolution_kept[s * convolution->kept_size()];
        convolution->forward(parts, kept, scratch.convolution);
        parts = convolution->mixed(parts, kept);
      }
      T* kept = weighting.keeps ? &t.weights_kept[s * matrices] : nullptr;
      weighting.template in<T>().weights(parts, draws(layer, s, scratch),
                                         &t.attention[s * matrices], kept, scratch.transposed);
    } else if (own) {
      std::copy_n(shared(layer).data(), matrices, &t.attention[s * matrices]);
    }
    if (scratch.hook == nullptr) mix(s);  // while the matrices are in the cache
  }
  if (scratch.hook == nullptr) return;
  show(scratch, Activated::attention, layer, t.attention);
  for (int64_t s = 0; s < samples; ++s) mix(s);
  if (block.mixes()) show(scratch, Activated::heads, layer, t.mixed);
}

template <class T>
void BlockNetwork<T>::attend_backward(int layer, int all_samples, const T* attended, Layer& t,
                                      Scratch& scratch, bool accumulate, T* dattended,
                                      std::span<T> sums) const {
  const AttentionBlock& block = block_of(layer).attention;
  const int samples = symbol_samples(all_samples, scratch);
  const bool own = per_sample(block);
  const int64_t n = nodes(), rows = samples * n, matrices = block.heads * n * n;
  const int64_t row = key_row(block);
  const std::vector<T>& keys = has_features(block) ? t.features : t.query_key;
  std::vector<T>& dkeys = has_features(block) ? scratch.dfeatures : scratch.dquery_key;
  const ScoreConvolution<T>* convolution = this->convolution(layer);
  if (convolution) convolution->begin_backward(scratch.convolution);
  scratch.dvalue.resize(t.value.size());
  scratch.dstream_value.resize(t.stream_value.size());
  scratch.da.resize(own ? matrices : 0);
  scratch.dquery_key.resize(t.query_key.size());
  dkeys.resize(rows * row);
  const std::vector<MixedPart> mixed = mixed_parts(layer, all_samples, t, scratch);
  const auto& weighting = row_of(block.weighting);
  T* shared_sums = sums.data() + attention_offset(layer % spec_.depth);
  for (int64_t s = 0; s < samples; ++s) {
    const T* a = own ? &t.attention[s * matrices] : shared(layer).data();
    T* da = own ? scratch.da.data() : shared_sums;
    bool adds = !own;
    for (const MixedPart& part : mixed) {
      for (int64_t k = s * part.samples; k < (s + 1) * part.samples; ++k) {
        for (int64_t h = 0; h < block.heads; ++h) {
          const int64_t at = k * n * part.shape.stride + h * part.shape.size, matrix = h * n * n;
          if (const auto mix_gradient = weighting.template in<T>().mix_gradient) {
            mix_gradient(part.shape, a + matrix, part.value + at, part.dmixed + at,
                         part.dvalue + at, adds, da + matrix);
            continue;
          }
          generic::mix_gradient(part.shape, a + matrix, part.value + at, part.dmixed + at,
                                part.dvalue + at, adds, da + matrix, scratch.transposed);
        }
        adds = true;  // one attention mixes all of it
      }
    }
    if (!own) continue;
    const int64_t place = s * n * row;
    const T* kept = weighting.keeps ? &t.weights_kept[s * matrices] : nullptr;
    const ScoreParts<T> parts =
        score_parts(layer, block.data ? &keys[place] : nullptr, fixed_scores(layer, s, scratch));
    T* dquery_key = block.data ? &dkeys[place] : nullptr;
    const auto& gradient_of = weighting.template in<T>().gradient;
    if (convolution) {
      const T* convolved = &t.convolution_kept[s * convolution->kept_size()];
      gradient_of(convolution->mixed(parts, convolved), a, kept, da, nullptr);
      convolution->backward(parts, convolved, da, dquery_key, scratch.convolution);
    } else {
      gradient_of(parts, a, kept, da, dquery_key);
    }
    if (block.positions) fixed_scores_backward(layer, s, scratch, da, sums);
  }
  if (convolution) convolution->end_backward(scratch.convolution, sums.data());
  if (block.mixes()) {
    fire_backward(block.value.neurons, rows, t.currents.value, scratch.dvalue.data(), scratch,
                  sums);
    maps_.backward(block.value, rows, attended, scratch.dvalue.data(), sums.data(), accumulate,
                   dattended);
  }
  if (const auto& values = block_of(layer).values) {
    maps_.backward(values->value, all_samples * n, t.v.data(), scratch.dstream_value.data(),
                   sums.data(), true, scratch.dv.data());
  }
  if (block.data) query_key_backward(layer, rows, attended, t, scratch, dattended, sums);
}

template <class T>
AttentionDraws BlockNetwork<T>::draws(int layer, int64_t sample, const Scratch& scratch) const {
  const StepContext& context = scratch.context;
  const int64_t rows = int64_t{1} * spec_.heads * spec_.nodes();
  const int64_t number = context.first_sample + scratch.first + sample;
  return {context, (number * layers_ + layer) * rows, &nodes_->index, spec_.nodes()};
}

template <class T>
void BlockNetwork<T>::fixed_scores_backward(int layer, int64_t sample, const Scratch& scratch,
                                            T* dscores, std::span<T> sums) const {
  const AttentionBlock& block = block_of(layer).attention;
  const int64_t n = nodes();
  T* shared_sums = sums.data() + attention_offset(layer % spec_.depth);
  const bool of_pairs = scores_pairs(block);
  for (int64_t r = 0; r < block.heads * n; ++r) {  // where nodes attend to others
    T* row = dscores + r * n;
    const int64_t end = block.causal ? r % n + 1 : n;
    if (of_pairs) std::fill(row + end, row + n, T(0));
    for (int64_t j = 0; !of_pairs && j < end; ++j) shared_sums[r * n + j] += row[j];
  }
  if (!of_pairs) return;
  row_of(block.positions->kind)
      .template in<T>()
      .gradient_of_pairs(*block.positions, block.heads, *nodes_, pairs_of(sample, scratch), dscores,
                         sums.data());
}

template <class T>
void BlockNetwork<T>::forward_layer(int layer, int samples, BlockTape<T>& tape) const {
  if (spec_.two_streams()) return forward_streams(layer, samples, tape);
  const LayerBlock& block = block_of(layer);
  Layer& t = tape.layers[layer];
  const int64_t rows = int64_t{samples} * nodes(), d = spec_.width;
  const bool before = block.when == Normalisation::before,
             after = block.when == Normalisation::after;
  std::vector<T>& next = layer + 1 < layers_ ? tape.layers[layer + 1].x : tape.decoder_input;
  if (before) normalise(*block.attention_norm, rows, t.x, t.attended);
  const std::vector<T>& attended = before ? t.attended : t.x;
  attend(layer, samples, attended.data(), t, tape.scratch);
  fire(block.attention.neurons, rows, t.mixed, t.currents.mixed);
  std::vector<T>& o = tape.scratch.o;
  o.resize(rows * d);
  maps_.forward(block.attention.output, rows, t.mixed.data(), o.data());
  fire(block.attention.output.neurons, rows, o, t.currents.output);
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
  if (spec_.two_streams()) return backward_streams(layer, samples, tape, dx, sums);
  const LayerBlock& block = block_of(layer);
  Layer& t = tape.layers[layer];
  Scratch& scratch = tape.scratch;
  const int64_t rows = int64_t{samples} * nodes(), d = spec_.width;
  const bool before = block.when == Normalisation::before,
             after = block.when == Normalisation::after;
  const T* attended = (before ? t.attended : t.x).data();
  scratch.dmixed.resize(rows * d);
  const auto mixed_backward = [&](const std::vector<T>& d_o) {
    const T* d = fire_backward_of(block.attention.output.neurons, rows, t.currents.output,
                                  d_o.data(), scratch, sums);
    maps_.backward(block.attention.output, rows, t.mixed.data(), d, sums.data(), false,
                   scratch.dmixed.data());
    fire_backward(block.attention.neurons, rows, t.currents.mixed, scratch.dmixed.data(), scratch,
                  sums);
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
