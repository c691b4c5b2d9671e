#include "posattn/model/reference_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "posattn/base/error.h"
#include "posattn/kernels/reference/operations.h"

namespace posattn {
namespace {

using Vector = std::vector<double>;

std::string layer_name(int layer, const std::string& tensor) {
  return "transformer_layers." + std::to_string(layer) + "." + tensor;
}

// Everything one layer computes for one sample; N active nodes, d = width, H heads.
struct LayerTrace {
  Vector x;          // [N, d], the layer's input
  Vector source;     // [N, d_k], what queries and keys are made of
  Vector query_key;  // [N, H, 2 d_k], queries then keys of each head, rotated when the spec says so
  Vector attention;  // [H, N, N]
  Vector value;      // [N, d]
  Vector mixed;      // [N, d], concat_h A_h V_h
  Vector concat;     // [N, 2 d], [x | o]
  std::vector<Vector> hidden;  // after each ReLU of the MLP, [N, mlp_width]
};

struct Trace {
  Vector input;  // [N, input_size]
  std::vector<LayerTrace> layers;
  Vector decoder_input;  // [N, d]
  Vector output;         // [N, output_columns]
};

class Reference {
 public:
  Reference(const ModelSpec& spec, const Parameters<double>& parameters, int real_nodes)
      : spec_(spec),
        parameters_(parameters),
        real_(real_nodes),
        n_(real_nodes + spec.scratch_nodes) {
    // The active nodes: the first real ones, then the scratch nodes, by their index in P.
    for (int i = 0; i < real_; ++i) index_.push_back(i);
    for (int i = 0; i < spec.scratch_nodes; ++i) index_.push_back(spec.real_nodes + i);
    if (spec.routed && real_nodes != spec.real_nodes) {
      throw Error(ExitCode::configuration, fmt::format("{} nodes for a routed model", real_nodes),
                  fmt::format("{}: its places are fixed", spec.real_nodes));
    }
    if (!spec.uses_positions()) return;
    const Vector all = positions_of(spec, parameters);
    const int p = spec.encoding_size;
    for (int i : index_) {
      positions_.insert(positions_.end(), all.begin() + int64_t{1} * i * p,
                        all.begin() + int64_t{1} * (i + 1) * p);
    }
  }

  Trace forward(const double* data) const;
  // Adds to `gradient`; dy [N, output_columns].
  void backward(const Trace& trace, const Vector& dy, Parameters<double>& gradient) const;
  int nodes() const { return n_; }

 private:
  const double* weight(const std::string& name) const { return parameters_[name].data(); }
  // Columns [data | P] of each node, whichever of the two is wanted.
  Vector join(const Vector* data, int data_size, bool with_positions) const;
  // The reverse of join: splits d [N, data_size + p] and adds to the parts (ddata may be null).
  void split(const Vector& d, int data_size, bool with_positions, Vector* ddata,
             Parameters<double>& gradient) const;
  void attend(int layer, LayerTrace& t) const;
  void route(int layer, LayerTrace& t) const;
  void mix(LayerTrace& t) const;
  void attend_backward(int layer, const LayerTrace& t, const Vector& dmixed, Vector& dx,
                       Parameters<double>& gradient) const;

  const ModelSpec& spec_;
  const Parameters<double>& parameters_;
  int real_, n_;
  std::vector<int> index_;
  Vector positions_;  // [N, encoding_size]
};

Vector Reference::join(const Vector* data, int data_size, bool with_positions) const {
  Vector joined;
  const int p = spec_.encoding_size;
  for (int i = 0; i < n_; ++i) {
    if (data) {
      joined.insert(joined.end(), data->begin() + i * data_size,
                    data->begin() + (i + 1) * data_size);
    }
    if (with_positions) {
      joined.insert(joined.end(), positions_.begin() + i * p, positions_.begin() + (i + 1) * p);
    }
  }
  return joined;
}

void Reference::split(const Vector& d, int data_size, bool with_positions, Vector* ddata,
                      Parameters<double>& gradient) const {
  const int p = with_positions ? spec_.encoding_size : 0, total = data_size + p;
  for (int i = 0; i < n_; ++i) {
    for (int c = 0; c < data_size; ++c) {
      if (ddata) (*ddata)[i * data_size + c] += d[i * total + c];
    }
    if (with_positions && spec_.encoding == Encoding::learned) {
      auto dp = gradient["positions.weight"];
      for (int c = 0; c < p; ++c) dp[index_[i] * p + c] += d[i * total + data_size + c];
    }
  }
}

// Row i of A_h has its mass on the places that node i reads, and the rest on the scratch node.
void Reference::route(int layer, LayerTrace& t) const {
  const int places = spec_.route_places;
  const double* routes = weight(layer_name(layer, "attn.routes"));
  const double* weights = places > 1 ? weight(layer_name(layer, "attn.route_weights")) : nullptr;
  for (int row = 0; row < spec_.heads * n_; ++row) {
    double* a = &t.attention[int64_t{1} * row * n_];
    double rest = 1;
    for (int k = 0; k < places; ++k) {
      const int64_t at = int64_t{1} * row * places + k;
      const double mass = weights ? weights[at] : 1.0;
      a[static_cast<int>(routes[at])] += mass;
      rest -= mass;
    }
    a[spec_.real_nodes] += std::max(0.0, rest);
  }
}

void Reference::mix(LayerTrace& t) const {
  const int d = spec_.width, dh = spec_.head_size();
  for (int h = 0; h < spec_.heads; ++h) {
    reference::product(false, false, n_, dh, n_, 1.0, &t.attention[h * n_ * n_], n_,
                       &t.value[h * dh], d, false, &t.mixed[h * dh], d);
  }
}

void Reference::attend(int layer, LayerTrace& t) const {
  const int h_count = spec_.heads, dk = spec_.key_size(), d = spec_.width;
  t.attention.assign(int64_t{1} * h_count * n_ * n_, 0.0);
  if (spec_.routed) {
    route(layer, t);
    mix(t);
    return;
  }
  if (spec_.direct_attention) {
    const double* scores = weight(layer_name(layer, "attn.scores"));
    const int all = spec_.nodes();
    for (int h = 0; h < h_count; ++h) {
      for (int i = 0; i < n_; ++i) {
        for (int j = 0; j < n_; ++j) {
          t.attention[(h * n_ + i) * n_ + j] = scores[(h * all + index_[i]) * all + index_[j]];
        }
      }
    }
  } else {
    const bool from_data = spec_.attention != AttentionSource::positions;
    t.source = join(from_data ? &t.x : nullptr, d, spec_.attention != AttentionSource::data);
    t.query_key.resize(int64_t{1} * n_ * h_count * 2 * dk);
    reference::linear(n_, dk, 2 * dk * h_count, t.source.data(),
                      weight(layer_name(layer, "attn.qk_proj.weight")),
                      weight(layer_name(layer, "attn.qk_proj.bias")), t.query_key.data());
    if (spec_.rope) {
      for (int i = 0; i < n_; ++i) {
        for (int part = 0; part < 2 * h_count; ++part) {
          reference::rotate(dk, index_[i], 1, &t.query_key[(i * 2 * h_count + part) * dk]);
        }
      }
    }
    for (int h = 0; h < h_count; ++h) {
      const double* query = &t.query_key[h * 2 * dk];
      reference::product(false, true, n_, n_, dk, 1.0 / std::sqrt(dk), query, 2 * dk * h_count,
                         query + dk, 2 * dk * h_count, false, &t.attention[h * n_ * n_], n_);
    }
  }
  reference::softmax_rows(h_count * n_, n_, t.attention.data());
  mix(t);
}

Trace Reference::forward(const double* data) const {
  const int d = spec_.width, m = spec_.mlp_width, columns = spec_.data_columns;
  Trace trace;
  Vector values(int64_t{1} * n_ * columns, 0.0);  // scratch nodes hold zeros
  std::copy(data, data + int64_t{1} * real_ * columns, values.begin());
  trace.input = join(&values, columns, spec_.positions_in_input);
  Vector x(int64_t{1} * n_ * d);
  reference::linear(n_, spec_.input_size(), d, trace.input.data(), weight("encoding.weight"),
                    weight("encoding.bias"), x.data());
  for (int l = 0; l < spec_.depth; ++l) {
    LayerTrace t;
    t.x = x;
    t.value.resize(x.size());
    t.mixed.resize(x.size());
    reference::linear(n_, d, d, t.x.data(), weight(layer_name(l, "attn.v_proj.weight")),
                      weight(layer_name(l, "attn.v_proj.bias")), t.value.data());
    attend(l, t);
    Vector o(x.size());
    reference::linear(n_, d, d, t.mixed.data(), weight(layer_name(l, "attn.o_proj.weight")),
                      weight(layer_name(l, "attn.o_proj.bias")), o.data());
    for (int i = 0; i < n_; ++i) {
      t.concat.insert(t.concat.end(), t.x.begin() + i * d, t.x.begin() + (i + 1) * d);
      t.concat.insert(t.concat.end(), o.begin() + i * d, o.begin() + (i + 1) * d);
    }
    Vector activation = t.concat;
    int in = 2 * d;
    for (int k = 0; k < spec_.mlp_depth; ++k) {
      const bool last = k + 1 == spec_.mlp_depth;
      const int out = last ? d : m;
      const std::string name = layer_name(l, "mlp.mlp." + std::to_string(2 * k));
      Vector next(int64_t{1} * n_ * out);
      reference::linear(n_, in, out, activation.data(), weight(name + ".weight"),
                        weight(name + ".bias"), next.data());
      if (!last) {
        reference::relu(next.size(), next.data());
        t.hidden.push_back(next);
      }
      activation = std::move(next);
      in = out;
    }
    x = activation;
    trace.layers.push_back(std::move(t));
  }
  trace.decoder_input = x;
  trace.output.resize(int64_t{1} * n_ * spec_.output_columns);
  reference::linear(n_, d, spec_.output_columns, x.data(), weight("decoding.weight"),
                    weight("decoding.bias"), trace.output.data());
  return trace;
}

void Reference::attend_backward(int layer, const LayerTrace& t, const Vector& dmixed, Vector& dx,
                                Parameters<double>& gradient) const {
  const int h_count = spec_.heads, dk = spec_.key_size(), d = spec_.width, dh = spec_.head_size();
  Vector dvalue(t.value.size(), 0.0), dscores(t.attention.size(), 0.0);
  for (int h = 0; h < h_count; ++h) {
    const double* a = &t.attention[h * n_ * n_];
    reference::product(true, false, n_, dh, n_, 1.0, a, n_, &dmixed[h * dh], d, false,
                       &dvalue[h * dh], d);
    reference::product(false, true, n_, n_, dh, 1.0, &dmixed[h * dh], d, &t.value[h * dh], d, false,
                       &dscores[h * n_ * n_], n_);
  }
  reference::softmax_rows_gradient(h_count * n_, n_, t.attention.data(), dscores.data());
  reference::linear_gradient(n_, d, d, t.x.data(), weight(layer_name(layer, "attn.v_proj.weight")),
                             dvalue.data(), dx.data(),
                             gradient[layer_name(layer, "attn.v_proj.weight")].data(),
                             gradient[layer_name(layer, "attn.v_proj.bias")].data());
  if (spec_.routed) return;  // the places do not change
  if (spec_.direct_attention) {
    auto ds = gradient[layer_name(layer, "attn.scores")];
    const int all = spec_.nodes();
    for (int h = 0; h < h_count; ++h) {
      for (int i = 0; i < n_; ++i) {
        for (int j = 0; j < n_; ++j) {
          ds[(h * all + index_[i]) * all + index_[j]] += dscores[(h * n_ + i) * n_ + j];
        }
      }
    }
    return;
  }
  const double scale = 1.0 / std::sqrt(dk);
  const int stride = 2 * dk * h_count;
  Vector dquery_key(t.query_key.size(), 0.0);
  for (int h = 0; h < h_count; ++h) {
    const double* query = &t.query_key[h * 2 * dk];
    double* dquery = &dquery_key[h * 2 * dk];
    const double* ds = &dscores[h * n_ * n_];
    reference::product(false, false, n_, dk, n_, scale, ds, n_, query + dk, stride, false, dquery,
                       stride);
    reference::product(true, false, n_, dk, n_, scale, ds, n_, query, stride, false, dquery + dk,
                       stride);
  }
  if (spec_.rope) {
    for (int i = 0; i < n_; ++i) {
      for (int part = 0; part < 2 * h_count; ++part) {
        reference::rotate(dk, index_[i], -1, &dquery_key[(i * 2 * h_count + part) * dk]);
      }
    }
  }
  Vector dsource(t.source.size(), 0.0);
  reference::linear_gradient(
      n_, dk, stride, t.source.data(), weight(layer_name(layer, "attn.qk_proj.weight")),
      dquery_key.data(), dsource.data(), gradient[layer_name(layer, "attn.qk_proj.weight")].data(),
      gradient[layer_name(layer, "attn.qk_proj.bias")].data());
  const bool from_data = spec_.attention != AttentionSource::positions;
  split(dsource, from_data ? d : 0, spec_.attention != AttentionSource::data, &dx, gradient);
}

void Reference::backward(const Trace& trace, const Vector& dy, Parameters<double>& gradient) const {
  const int d = spec_.width;
  Vector dx(trace.decoder_input.size(), 0.0);
  reference::linear_gradient(n_, d, spec_.output_columns, trace.decoder_input.data(),
                             weight("decoding.weight"), dy.data(), dx.data(),
                             gradient["decoding.weight"].data(), gradient["decoding.bias"].data());
  for (int l = spec_.depth - 1; l >= 0; --l) {
    const LayerTrace& t = trace.layers[l];
    Vector dactivation = dx;
    for (int k = spec_.mlp_depth - 1; k >= 0; --k) {
      const Vector& in = k == 0 ? t.concat : t.hidden[k - 1];
      const int in_size = k == 0 ? 2 * d : spec_.mlp_width;
      const int out_size = k + 1 == spec_.mlp_depth ? d : spec_.mlp_width;
      const std::string name = layer_name(l, "mlp.mlp." + std::to_string(2 * k));
      Vector din(in.size(), 0.0);
      reference::linear_gradient(n_, in_size, out_size, in.data(), weight(name + ".weight"),
                                 dactivation.data(), din.data(), gradient[name + ".weight"].data(),
                                 gradient[name + ".bias"].data());
      if (k > 0) reference::relu_gradient(din.size(), in.data(), din.data());
      dactivation = std::move(din);
    }
    Vector dattention_output(dx.size()), dmixed(dx.size(), 0.0);
    for (int i = 0; i < n_; ++i) {
      std::copy_n(&dactivation[i * 2 * d], d, &dx[i * d]);
      std::copy_n(&dactivation[i * 2 * d + d], d, &dattention_output[i * d]);
    }
    reference::linear_gradient(n_, d, d, t.mixed.data(),
                               weight(layer_name(l, "attn.o_proj.weight")),
                               dattention_output.data(), dmixed.data(),
                               gradient[layer_name(l, "attn.o_proj.weight")].data(),
                               gradient[layer_name(l, "attn.o_proj.bias")].data());
    attend_backward(l, t, dmixed, dx, gradient);
  }
  Vector dinput(trace.input.size(), 0.0);
  reference::linear_gradient(n_, spec_.input_size(), d, trace.input.data(),
                             weight("encoding.weight"), dx.data(), dinput.data(),
                             gradient["encoding.weight"].data(), gradient["encoding.bias"].data());
  split(dinput, spec_.data_columns, spec_.positions_in_input, nullptr, gradient);
}

}  // namespace

std::vector<double> reference_forward(const ModelSpec& spec, const Parameters<double>& parameters,
                                      const ReferenceBatch& batch) {
  const Reference network(spec, parameters, batch.real_nodes);
  Vector outputs;
  const int64_t in = int64_t{1} * batch.real_nodes * spec.data_columns;
  const int64_t out = int64_t{1} * batch.real_nodes * spec.output_columns;
  for (int64_t s = 0; s < batch.samples; ++s) {
    const Trace trace = network.forward(batch.inputs + s * in);
    outputs.insert(outputs.end(), trace.output.begin(), trace.output.begin() + out);
  }
  return outputs;
}

double reference_gradient(const ModelSpec& spec, const Parameters<double>& parameters,
                          const ReferenceBatch& batch, std::span<const uint8_t> mask,
                          Parameters<double>& gradient) {
  const Reference network(spec, parameters, batch.real_nodes);
  const int64_t in = int64_t{1} * batch.real_nodes * spec.data_columns;
  const int64_t out = int64_t{1} * batch.real_nodes * spec.output_columns;
  const double count = static_cast<double>(batch.samples * out);
  std::ranges::fill(gradient.values(), 0.0);
  double loss = 0;
  for (int64_t s = 0; s < batch.samples; ++s) {
    const Trace trace = network.forward(batch.inputs + s * in);
    Vector dy(trace.output.size(), 0.0);  // outputs of scratch nodes do not count
    for (int64_t i = 0; i < out; ++i) {
      if (!mask.empty() && !mask[i]) continue;
      const double error = trace.output[i] - batch.targets[s * out + i];
      loss += error * error / count;
      dy[i] = 2 * error / count;
    }
    network.backward(trace, dy, gradient);
  }
  return loss;
}

std::vector<double> reference_attention(const ModelSpec& spec, const Parameters<double>& parameters,
                                        const ReferenceBatch& one_sample) {
  const Reference network(spec, parameters, one_sample.real_nodes);
  const Trace trace = network.forward(one_sample.inputs);
  Vector attention;
  for (const LayerTrace& t : trace.layers) {
    attention.insert(attention.end(), t.attention.begin(), t.attention.end());
  }
  return attention;
}

}  // namespace posattn
