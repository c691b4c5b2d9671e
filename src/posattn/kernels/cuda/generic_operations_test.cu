#include <algorithm>

#include "posattn/kernels/cuda/host_operands_test.h"
#include "posattn/kernels/cuda/losses.h"
#include "posattn/kernels/cuda/norms.h"
#include "posattn/kernels/cuda/operations_test.h"
#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/relative.h"
#include "posattn/kernels/cuda/tokens.h"
#include "posattn/kernels/operations.h"

namespace posattn::cuda {
namespace {

int32_t narrow(int64_t size) { return static_cast<int32_t>(size); }

DeviceBuffer<int32_t> classes(const Buffer<float>& operand, int64_t count) {
  std::vector<int32_t> result(operand.size());
  std::transform(operand.begin(), operand.end(), result.begin(),
                 [&](float x) { return class_of(x, count); });
  return DeviceBuffer<int32_t>(result);
}
void clear(Buffer<float>& operand) { std::fill(operand.begin(), operand.end(), 0.0f); }

// ---- layer norm; sizes rows, columns
void layer_norm(Precision, const Sizes& s, const Operands<float>& in, Buffer<float>& output) {
  const auto x = to_device(in[0]), gain = to_device(in[1]), shift = to_device(in[2]);
  DeviceBuffer<float> y(x.size());
  enqueue_layer_norm(1, s[0], narrow(s[1]), {x.data(), 0, s[1]}, {gain.data()}, {shift.data()},
                     {y.data(), 0, s[1]}, nullptr, nullptr);
  to_host(y, output);
}
void layer_norm_gradient(Precision, const Sizes& s, const Operands<float>& in, const Buffer<float>&,
                         const Buffer<float>& doutput, Operands<float>& dinputs) {
  const auto x = to_device(in[0]), gain = to_device(in[1]);
  auto d = to_device(doutput);
  DeviceBuffer<float> terms(x.size()), dgain(s[1]), dshift(s[1]);
  const auto sum_rows = [&](DeviceBuffer<float>& of, DeviceBuffer<float>& to) {
    enqueue_group_sums(1, 1, narrow(s[0]), narrow(s[1]), {of.data(), 0, s[1]}, {to.data()}, false,
                       nullptr, nullptr);
  };
  sum_rows(d, dshift);
  enqueue_layer_norm_gradient(1, s[0], narrow(s[1]), {x.data(), 0, s[1]}, {gain.data()},
                              {d.data(), 0, s[1]}, {terms.data(), 0, s[1]}, nullptr, nullptr);
  sum_rows(terms, dgain);
  to_host(d, dinputs[0]);
  to_host(dgain, dinputs[1]);
  to_host(dshift, dinputs[2]);
}

// ---- activations, which are the ends of products: here of x times 1; sizes rows, columns
DeviceBuffer<float> through_curve(Curve curve, Precision precision, const Buffer<float>& of,
                                  const Buffer<float>* slope_at) {
  const auto x = to_device(of), at = slope_at ? to_device(*slope_at) : DeviceBuffer<float>();
  const DeviceBuffer<float> one(std::vector<float>{1});
  DeviceBuffer<float> y(x.size()), workspace(product_workspace);
  Product p;
  p.rows = narrow(x.size());
  p.columns = p.depth = 1;
  p.a = row_major(x.data(), 1);
  p.b = row_major(one.data(), 1);
  p.c = row_major(y.data(), 1);
  p.curve = curve;
  if (slope_at) p.slope_at = {at.data(), 0, 1};
  enqueue_product(p, precision, nullptr, workspace.data(), nullptr);
  return y;
}
template <Curve curve>
void activate(Precision precision, const Sizes&, const Operands<float>& in, Buffer<float>& output) {
  to_host(through_curve(curve, precision, in[0], nullptr), output);
}
template <Curve curve>
void activate_gradient(Precision precision, const Sizes&, const Operands<float>& in,
                       const Buffer<float>&, const Buffer<float>& doutput,
                       Operands<float>& dinputs) {
  to_host(through_curve(curve, precision, doutput, &in[0]), dinputs[0]);
}

// ---- tokens; sizes rows, columns, vocabulary
void embed(Precision, const Sizes& s, const Operands<float>& in, Buffer<float>& output) {
  const auto tokens = classes(in[0], s[2]);
  const auto table = to_device(in[1]);
  DeviceBuffer<float> y(s[0] * s[1]);
  enqueue_embed(1, s[0], narrow(s[1]), tokens.data(), {table.data(), 0, s[1]}, Embedding::alone,
                {y.data(), 0, s[1]}, nullptr, nullptr);
  to_host(y, output);
}
void embed_gradient(Precision, const Sizes& s, const Operands<float>& in, const Buffer<float>&,
                    const Buffer<float>& doutput, Operands<float>& dinputs) {
  const auto tokens = classes(in[0], s[2]);
  const auto d = to_device(doutput);
  DeviceBuffer<float> dtable(s[2] * s[1]);
  DeviceBuffer<float> workspace(product_workspace);
  enqueue_embed_gradient(1, s[0], narrow(s[1]), narrow(s[2]), tokens.data(), {d.data(), 0, s[1]},
                         {dtable.data(), 0, s[1]}, false, nullptr, workspace.data(), nullptr);
  clear(dinputs[0]);
  to_host(dtable, dinputs[1]);
}

// ---- softmax over nodes 0..i; sizes heads, nodes
void causal_softmax(Precision, const Sizes& s, const Operands<float>& in, Buffer<float>& output) {
  auto x = to_device(in[0]);
  enqueue_softmax(1, s[0] * s[1], narrow(s[1]), {x.data(), 0, s[1]}, {x.data(), 0, s[1]},
                  {0, narrow(s[1])}, nullptr, nullptr);
  to_host(x, output);
}
void causal_softmax_gradient(Precision, const Sizes& s, const Operands<float>&,
                             const Buffer<float>& output, const Buffer<float>& doutput,
                             Operands<float>& dinputs) {
  const auto y = to_device(output);
  auto d = to_device(doutput);
  enqueue_softmax_gradient(1, s[0] * s[1], narrow(s[1]), {y.data(), 0, s[1]}, {d.data(), 0, s[1]},
                           {d.data(), 0, s[1]}, {0, narrow(s[1])}, nullptr, nullptr);
  to_host(d, dinputs[0]);
}

// ---- scores by distance; sizes real nodes, scratch nodes, reach
generic::RelativeShape relative_shape(const Sizes& s) {
  return {narrow(s[0]), narrow(s[1]), narrow(s[2])};
}
void relative(Precision, const Sizes& s, const Operands<float>& in, Buffer<float>& output) {
  const generic::RelativeShape shape = relative_shape(s);
  const auto t = to_device(in[0]), u = to_device(in[1]);
  DeviceBuffer<float> scores(static_cast<int64_t>(output.size()));
  enqueue_relative_scores(1, 1, shape, {t.data(), u.data()}, {scores.data(), 0, shape.nodes()},
                          nullptr, nullptr);
  to_host(scores, output);
}
void relative_gradient(Precision, const Sizes& s, const Operands<float>& in, const Buffer<float>&,
                       const Buffer<float>& doutput, Operands<float>& dinputs) {
  const generic::RelativeShape shape = relative_shape(s);
  const auto d = to_device(doutput);
  DeviceBuffer<float> dt(static_cast<int64_t>(in[0].size())),
      du(static_cast<int64_t>(in[1].size()));
  enqueue_relative_scores_gradient(1, 1, shape, {d.data(), 0, shape.nodes()},
                                   {dt.data(), du.data()}, nullptr, nullptr);
  to_host(dt, dinputs[0]);
  to_host(du, dinputs[1]);
}

// ---- parts brought to a norm; sizes rows, columns
PartShape part_shape(const Sizes& s) { return {1, narrow(s[0]), 1, narrow(s[1]), 0, false}; }
void scale_parts(Precision, const Sizes& s, const Operands<float>& in, Buffer<float>& output) {
  const auto x = to_device(in[0]);
  DeviceBuffer<float> y(x.size()), inverse(s[0]);
  enqueue_scale_parts(part_shape(s), {x.data(), 0, s[1]}, {y.data(), 0, s[1]},
                      {inverse.data(), 0, 1}, nullptr, nullptr);
  to_host(y, output);
}
void scale_parts_gradient(Precision, const Sizes& s, const Operands<float>& in,
                          const Buffer<float>&, const Buffer<float>& doutput,
                          Operands<float>& dinputs) {
  const auto x = to_device(in[0]), dy = to_device(doutput);
  DeviceBuffer<float> y(x.size()), dx(x.size()), inverse(s[0]);
  enqueue_scale_parts(part_shape(s), {x.data(), 0, s[1]}, {y.data(), 0, s[1]},
                      {inverse.data(), 0, 1}, nullptr, nullptr);
  enqueue_scale_parts_gradient(part_shape(s), {y.data(), 0, s[1]}, {inverse.data(), 0, 1},
                               {dy.data(), 0, s[1]}, {dx.data(), 0, s[1]}, false, nullptr, nullptr);
  to_host(dx, dinputs[0]);
}

// ---- queries and keys of unit norm; sizes rows, heads, size
KeyShape key_shape(const Sizes& s) { return {1, s[0], narrow(s[1]), narrow(s[2])}; }
void unit_keys(Precision, const Sizes& s, const Operands<float>& in, Buffer<float>& output) {
  auto x = to_device(in[0]);
  const auto log_scale = to_device(in[1]);
  DeviceBuffer<float> inverse(2 * s[0] * s[1]);
  enqueue_unit_keys(key_shape(s), {log_scale.data()}, {x.data(), 0, 2 * s[1] * s[2]},
                    {inverse.data(), 0, 2 * s[1]}, nullptr, nullptr);
  to_host(x, output);
}
void unit_keys_gradient(Precision, const Sizes& s, const Operands<float>& in, const Buffer<float>&,
                        const Buffer<float>& doutput, Operands<float>& dinputs) {
  auto x = to_device(in[0]), d = to_device(doutput);
  const auto log_scale = to_device(in[1]);
  const int64_t stride = 2 * s[1] * s[2];
  DeviceBuffer<float> inverse(2 * s[0] * s[1]), along(s[0] * s[1]), sums(s[1]);
  enqueue_unit_keys(key_shape(s), {log_scale.data()}, {x.data(), 0, stride},
                    {inverse.data(), 0, 2 * s[1]}, nullptr, nullptr);
  enqueue_unit_keys_gradient(key_shape(s), {log_scale.data()}, {x.data(), 0, stride},
                             {inverse.data(), 0, 2 * s[1]}, {d.data(), 0, stride},
                             {along.data(), 0, s[1]}, nullptr, nullptr);
  enqueue_group_sums(1, 1, narrow(s[0]), narrow(s[1]), {along.data(), 0, s[1]}, {sums.data()},
                     false, nullptr, nullptr);
  to_host(d, dinputs[0]);
  to_host(sums, dinputs[1]);
}

// ---- losses: one node, whose samples are the rows; the loss, and in `dy` its gradient
double squared_error(const Sizes& s, const Operands<float>& in, DeviceBuffer<float>& dy) {
  const auto target = to_device(in[1]);
  const DeviceBuffer<SlotStep> steps({{narrow(s[0]), 1, 1.0f / static_cast<float>(s[0] * s[1])}});
  const DeviceBuffer<uint8_t> counted(std::vector<uint8_t>(s[1], 1));
  DeviceBuffer<double> partial(1), loss(1);
  enqueue_squared_error({1, 1, narrow(s[0]), narrow(s[1])}, target.data(), counted.data(),
                        steps.data(), dy.data(), 0, partial.data(), loss.data(), nullptr);
  return loss.download()[0];
}
double cross_entropy(const Sizes& s, const Operands<float>& in, DeviceBuffer<float>& dy) {
  const auto labels = classes(in[1], s[1]);
  const DeviceBuffer<SlotStep> steps({{narrow(s[0]), 1, 0}});
  const DeviceBuffer<uint8_t> counted(std::vector<uint8_t>(s[1], 1));
  DeviceBuffer<int32_t> counts(1);
  DeviceBuffer<double> partial(1), loss(1);
  enqueue_cross_entropy({1, 1, narrow(s[0]), narrow(s[1])}, {labels.data(), counted.data()},
                        steps.data(), dy.data(), 0, counts.data(), partial.data(), loss.data(),
                        nullptr);
  return loss.download()[0];
}

// What the loss in the table's row divides by: it counts labels that are absent, too.
double all_rows(const Sizes&, const Operands<float>&) { return 1; }
double labelled_rows(const Sizes& s, const Operands<float>& in) {
  const auto absent = std::ranges::count_if(in[1], [&](float x) { return class_of(x, s[1]) < 0; });
  return 1 - static_cast<double>(absent) / static_cast<double>(s[0]);
}

template <auto loss, auto share>
void loss_row(Precision, const Sizes& s, const Operands<float>& in, Buffer<float>& output) {
  auto dy = to_device(in[0]);
  output[0] = static_cast<float>(share(s, in) * loss(s, in, dy));
}
template <auto loss, auto share, bool target_has_gradient>
void loss_row_gradient(Precision, const Sizes& s, const Operands<float>& in, const Buffer<float>&,
                       const Buffer<float>& doutput, Operands<float>& dinputs) {
  auto dy = to_device(in[0]);
  loss(s, in, dy);
  to_host(dy, dinputs[0]);
  for (float& x : dinputs[0]) x *= static_cast<float>(share(s, in)) * doutput[0];
  clear(dinputs[1]);
  if (!target_has_gradient) return;
  std::transform(dinputs[0].begin(), dinputs[0].end(), dinputs[1].begin(), std::negate<>());
}

}  // namespace

std::vector<CudaOperation> plain_cuda_operations() {
  return {
      {"layer-norm", layer_norm, layer_norm_gradient},
      {"gelu", activate<Curve::gelu>, activate_gradient<Curve::gelu>},
      {"gelu-tanh", activate<Curve::gelu_tanh>, activate_gradient<Curve::gelu_tanh>},
      {"embed", embed, embed_gradient},
      {"causal-softmax", causal_softmax, causal_softmax_gradient},
      {"relative-scores", relative, relative_gradient},
      {"scale-parts", scale_parts, scale_parts_gradient},
      {"unit-keys", unit_keys, unit_keys_gradient},
      {"squared-error", loss_row<squared_error, all_rows>,
       loss_row_gradient<squared_error, all_rows, true>},
      {"cross-entropy", loss_row<cross_entropy, labelled_rows>,
       loss_row_gradient<cross_entropy, labelled_rows, false>},
  };
}

}  // namespace posattn::cuda
