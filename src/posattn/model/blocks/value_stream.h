// One layer of two streams of a BlockNetwork: symbols s, which do not scale, and values v, which
// do. Attention, made of symbols, mixes both. Definitions for block_network.cc, as block_layer.h.
//
//   z = norm(s), or s without a norm;  w = v / r,  r the root mean square of the sample's values, w
//   = 0 where v = 0 s1 = s + mix(z),  z' = norm(s1) v' = as ValueStreamBlock says, from v, mix(v)
//   and z' s' = s1 + MLP([z' | v' / r'])
//
// By induction over layers s(c x) = s(x) and v(c x) = c v(x) for c > 0: there is no epsilon in w.
#pragma once

#include "posattn/model/blocks/block_layer.h"

namespace posattn {
namespace {

// v divided by the root mean square of each part of `part` numbers, and 1 / |v|.
template <class T>
void divide_by_size(int64_t part, const std::vector<T>& v, std::vector<T>& unit,
                    std::vector<T>& inverse) {
  unit = v;
  inverse.resize(v.size() / part);
  const T norm = std::sqrt(static_cast<T>(part));
  for (size_t s = 0; s < inverse.size(); ++s) {
    inverse[s] = generic::to_norm(part, norm, &unit[s * part]);
  }
}

// dunit becomes the gradient by v, which is added to dv.
template <class T>
void divide_by_size_gradient(int64_t part, const std::vector<T>& unit,
                             const std::vector<T>& inverse, std::vector<T>& dunit,
                             std::vector<T>& dv) {
  const T norm = std::sqrt(static_cast<T>(part));
  for (size_t s = 0; s < inverse.size(); ++s) {
    generic::to_norm_gradient(part, norm, inverse[s], &unit[s * part], &dunit[s * part]);
  }
  add_to(dunit, dv);
}

// g = 2 sigmoid(p) in place, which is 1 for p = 0; and dg becomes dp = dg g (1 - g / 2).
template <class T>
void open_gates(std::vector<T>& gates) {
  for (T& g : gates) g = T(1) + std::tanh(g / 2);
}
template <class T>
void gates_gradient(const std::vector<T>& gates, std::vector<T>& dgates) {
  for (size_t i = 0; i < gates.size(); ++i) dgates[i] *= gates[i] * (T(1) - gates[i] / 2);
}

}  // namespace

template <class T>
void BlockNetwork<T>::forward_values(const ValueStreamBlock& block, int64_t rows,
                                     int64_t symbol_rows, Layer& t, Scratch& scratch,
                                     std::vector<T>& next) const {
  const int64_t columns = block.output.out;
  const auto mapped = [&](const LinearBlock& map, const std::vector<T>& x, std::vector<T>& y) {
    const int64_t count = static_cast<int64_t>(x.size()) / map.in;
    y.resize(count * map.out);
    maps_.forward(map, count, x.data(), y.data());
  };
  mapped(block.output, t.stream_mixed, t.stream_output);
  t.u = t.v;
  if (block.mix_gate) {
    mapped(*block.mix_gate, t.mlp_input, t.mix_gates);
    open_gates(t.mix_gates);
    for (int64_t r = 0; r < rows; ++r) {
      const T* gates = &t.mix_gates[r % symbol_rows * 2 * columns];
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = r * columns + c;
        t.u[at] = gates[c] * t.v[at] + gates[columns + c] * t.stream_output[at];
      }
    }
  } else {
    add_to(t.stream_output, t.u);
  }
  next = t.u;
  if (block.mlp.empty()) return;
  mapped(block.mlp[0], t.u, t.stream_hidden);
  std::vector<T>& hidden = scratch.hidden;
  activate(Activation::relu, t.stream_hidden, hidden);
  if (block.hidden_gate) {
    mapped(*block.hidden_gate, t.mlp_input, t.hidden_gates);
    open_gates(t.hidden_gates);
    const size_t of_gates = t.hidden_gates.size();
    for (size_t at = 0; at < hidden.size(); at += of_gates) {
      for (size_t i = 0; i < of_gates; ++i) hidden[at + i] *= t.hidden_gates[i];
    }
  }
  mapped(block.mlp[1], hidden, next);
  add_to(t.u, next);
}

template <class T>
void BlockNetwork<T>::backward_values(const ValueStreamBlock& block, int64_t rows,
                                      int64_t symbol_rows, const Layer& t, Scratch& scratch,
                                      std::vector<T>& dz, std::span<T> sums) const {
  const int64_t columns = block.output.out;
  std::vector<T>&dv = scratch.dv, &du = scratch.du, &dgates = scratch.dgates;
  const auto gate_backward = [&](const LinearBlock& gate, const std::vector<T>& gates) {
    gates_gradient(gates, dgates);
    maps_.backward(gate, symbol_rows, t.mlp_input.data(), dgates.data(), sums.data(), true,
                   dz.data());
  };
  du = dv;
  if (!block.mlp.empty()) {
    const size_t count = t.stream_hidden.size();
    std::vector<T>&hidden = scratch.hidden, &dhidden = scratch.dstream_hidden;
    hidden.resize(count);
    dhidden.resize(count);
    maps_.input_gradient(block.mlp[1], rows, dv.data(), false, dhidden.data());
    const size_t of_gates = symbol_rows * block.mlp[0].out;
    dgates.assign(of_gates, T(0));
    for (size_t at = 0; at < count; at += of_gates) {
      for (size_t i = 0; i < of_gates; ++i) {
        const T h = std::max(t.stream_hidden[at + i], T(0));
        const T gate = block.hidden_gate ? t.hidden_gates[i] : T(1);
        hidden[at + i] = gate * h;
        dgates[i] += h * dhidden[at + i];
        dhidden[at + i] *= h > 0 ? gate : T(0);
      }
    }
    maps_.weight_gradient(block.mlp[1], rows, hidden.data(), dv.data(), sums.data());
    maps_.backward(block.mlp[0], rows, t.u.data(), dhidden.data(), sums.data(), true, du.data());
    if (block.hidden_gate) gate_backward(*block.hidden_gate, t.hidden_gates);
  }
  dv = du;
  if (block.mix_gate) {  // du becomes d o
    dgates.assign(t.mix_gates.size(), T(0));
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t gates_at = r % symbol_rows * 2 * columns;
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = r * columns + c, g1 = gates_at + c, g2 = g1 + columns;
        dgates[g1] += du[at] * t.v[at];
        dgates[g2] += du[at] * t.stream_output[at];
        dv[at] = t.mix_gates[g1] * du[at];
        du[at] *= t.mix_gates[g2];
      }
    }
    gate_backward(*block.mix_gate, t.mix_gates);
  }
  scratch.dstream_mixed.resize(rows * columns);
  maps_.backward(block.output, rows, t.stream_mixed.data(), du.data(), sums.data(), false,
                 scratch.dstream_mixed.data());
}

template <class T>
void BlockNetwork<T>::read_symbols(const std::optional<NormalisationBlock>& norm, int64_t rows,
                                   const std::vector<T>& s, std::vector<T>& z) const {
  if (norm) return normalise(*norm, rows, s, z);
  z = s;
}

template <class T>
void BlockNetwork<T>::forward_streams(int layer, int samples, BlockTape<T>& tape) const {
  const LayerBlock& block = block_of(layer);
  Layer& t = tape.layers[layer];
  const int64_t all_rows = int64_t{samples} * nodes(), sample = nodes() * spec_.value_width;
  const int64_t rows = int64_t{symbol_samples(samples, tape.scratch)} * nodes();  // of symbols
  const bool last = layer + 1 == layers_;
  std::vector<T>& next = last ? tape.decoder_input : tape.layers[layer + 1].x;
  std::vector<T>& next_v = last ? tape.stream_output : tape.layers[layer + 1].v;
  read_symbols(block.attention_norm, rows, t.x, t.attended);
  if (spec_.scores_read_values) divide_by_size(sample, t.v, t.unit, t.unit_inverse);
  attend(layer, samples, t.attended.data(), t, tape.scratch);
  t.joined = t.x;
  if (block.attention.mixes()) {
    std::vector<T>& o = tape.scratch.o;
    o.resize(t.x.size());
    maps_.forward(block.attention.output, rows, t.mixed.data(), o.data());
    show(tape.scratch, Activated::attention_output, layer, o);
    add_to(o, t.joined);
  }
  if (block.attention.mixes()) read_symbols(block.mlp_norm, rows, t.joined, t.mlp_input);
  if (block.values) forward_values(*block.values, all_rows, rows, t, tape.scratch, next_v);
  next = t.joined;
  if (!block.mlp.maps.empty()) {
    const T* input = t.mlp_input.data();
    if (block.symbols_read_values) {
      divide_by_size(sample, next_v, t.next_unit, t.next_unit_inverse);
      join_columns(rows, spec_.width, input, spec_.value_width, t.next_unit.data(), t.joined_input);
      input = t.joined_input.data();
    }
    forward_mlp(layer, rows, input, t, tape.scratch, next);
    add_to(t.joined, next);
  }
  show(tape.scratch, Activated::state, layer, next);
}

template <class T>
void BlockNetwork<T>::backward_streams(int layer, int samples, BlockTape<T>& tape,
                                       std::vector<T>& dx, std::span<T> sums) const {
  const LayerBlock& block = block_of(layer);
  Layer& t = tape.layers[layer];
  Scratch& scratch = tape.scratch;
  const int64_t all_rows = int64_t{samples} * nodes(), sample = nodes() * spec_.value_width;
  const int64_t rows = int64_t{symbol_samples(samples, scratch)} * nodes();  // of symbols
  std::vector<T>&dz = scratch.dmlp, &dv = scratch.dv, &dunit = scratch.dunit;
  dunit.resize(dv.size());
  dz.assign(dx.size(), T(0));
  if (block.symbols_read_values) {
    backward_mlp(block.mlp, rows, t.joined_input.data(), t, dx.data(), scratch, scratch.djoined,
                 sums);
    split_columns(rows, spec_.width, dz.data(), spec_.value_width, dunit.data(),
                  scratch.djoined.data());
    divide_by_size_gradient(sample, t.next_unit, t.next_unit_inverse, dunit, dv);
  } else if (!block.mlp.maps.empty()) {
    backward_mlp(block.mlp, rows, t.mlp_input.data(), t, dx.data(), scratch, dz, sums);
  }
  if (block.values) backward_values(*block.values, all_rows, rows, t, scratch, dz, sums);
  if (block.attention.mixes()) {
    if (block.mlp_norm) normalise_backward(*block.mlp_norm, rows, t.joined, dz, scratch, sums);
    add_to(dz, dx);
    scratch.dmixed.resize(dx.size());
    maps_.backward(block.attention.output, rows, t.mixed.data(), dx.data(), sums.data(), false,
                   scratch.dmixed.data());
  }
  scratch.dattended.assign(dx.size(), T(0));
  attend_backward(layer, samples, t.attended.data(), t, scratch, true, scratch.dattended.data(),
                  sums);
  if (spec_.scores_read_values) {
    divide_by_size_gradient(sample, t.unit, t.unit_inverse, dunit, dv);
  }
  if (block.attention_norm) {
    normalise_backward(*block.attention_norm, rows, t.x, scratch.dattended, scratch, sums);
  }
  add_to(scratch.dattended, dx);
}

}  // namespace posattn
