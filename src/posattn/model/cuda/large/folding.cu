#include <algorithm>
#include <cmath>
#include <vector>

#include "posattn/kernels/cuda/product.h"
#include "posattn/model/cuda/large/folding.h"
#include "posattn/model/cuda/large/folding_vectors.h"

namespace posattn::cuda {

LargeFoldingPlan::LargeFoldingPlan(const ModelSpec& spec)
    : FoldedTensors(spec),
      width(spec.width),
      score_scale(1 / std::sqrt(static_cast<float>(spec.width))),
      kept_stride(0) {
  const auto take = [&](int64_t count) {
    const int64_t offset = kept_stride;
    kept_stride += FoldedLayout::padded(count);
    return offset;
  };
  const int64_t map = int64_t{1} * hidden * width;
  values = take(map);
  dvalues = take(map);
  maps = take((1 + heads) * map);
  dmaps = take((1 + heads) * map);
  const int64_t queries = from_data ? int64_t{1} * heads * width : 0;
  const int64_t columns = std::max(input, hidden);
  sides = take(2 * queries * columns);
  dsides = take(2 * queries * columns);
  query_bias = take(queries);
  dquery_bias = take(queries);
}

namespace {

// Consecutive layers whose s have the same columns, and so matrices of one stride.
struct Layers {
  int first, count, columns;
};

// The products of a fold or unfold. Each is one launch for all slots, a range of layers (outer) and
// heads or maps (inner), in fp32 whatever the engine's precision.
class Products {
 public:
  Products(const LargeFoldingPlan& plan, int slots, const FoldingStep& step)
      : plan_(plan),
        step_(step),
        slots_(slots),
        d_(plan.width),
        hidden_(plan.hidden),
        size_(plan.head_size),
        map_(int64_t{1} * hidden_ * d_),
        all_{0, plan.depth, 0} {}

  // P = W1o Wo, B_h = P_h Wv_h
  void fold_values() {
    multiply(all_, 1, {hidden_, d_, d_}, weight(all_, plan_.first.weight + d_, 2 * d_),
             weight(all_, plan_.output.weight, d_), kept(all_, plan_.values, d_));
    multiply(all_, plan_.heads, {hidden_, d_, size_}, kept(all_, plan_.values, d_, size_),
             weight(all_, plan_.value.weight, d_, size_ * d_),
             kept(all_, plan_.maps + map_, d_, map_));
  }
  // M_m = B_m E
  void fold_maps(const Layers& layers) {
    const int k = layers.columns;
    multiply(layers, 1 + plan_.heads, {hidden_, k, d_}, kept(layers, plan_.maps, d_, map_),
             entering(layers),
             folded(step_.folded, plan_.places(layers.first).maps, k, hidden_ * k));
  }
  // Q = Wq E, K = Wk E
  void fold_sides(const Layers& layers) {
    multiply(layers, 1, {2 * plan_.heads * d_, layers.columns, d_},
             weight(layers, plan_.query_key.weight, d_), entering(layers), side(layers, 0));
  }
  // G_h = Q_h^T K_h / sqrt(d_k)
  void fold_scores(const Layers& layers) {
    const int k = layers.columns;
    multiply(layers, plan_.heads, {k, k, d_}, transpose(side(layers, 0)), side(layers, 1),
             folded(step_.folded, plan_.places(layers.first).scores, k, k * k), plan_.score_scale);
  }

  // dB_m = dM_m E^T + (dc e^T, which is there)
  void unfold_maps(const Layers& layers) {
    multiply(layers, 1 + plan_.heads, {hidden_, d_, layers.columns}, dmaps(layers, hidden_),
             transpose(entering(layers)), kept(layers, plan_.dmaps, d_, map_), 1, true);
  }
  // dP_h = dB_h Wv_h^T + (dc bv_h^T),  dWv_h = P_h^T dB_h,  dW1o = dP Wo^T + (dc bo^T),
  // dWo = W1o^T dP
  void unfold_values() {
    const Matrix<const float> db = kept(all_, plan_.dmaps + map_, d_, map_);
    multiply(all_, plan_.heads, {hidden_, size_, d_}, db,
             transpose(weight(all_, plan_.value.weight, d_, size_ * d_)),
             kept(all_, plan_.dvalues, d_, size_), 1, true);
    multiply(all_, plan_.heads, {size_, d_, hidden_},
             transpose(kept(all_, plan_.values, d_, size_)), db,
             gradient(all_, plan_.value.weight, d_, size_ * d_));
    multiply(all_, 1, {hidden_, d_, d_}, kept(all_, plan_.dvalues, d_),
             transpose(weight(all_, plan_.output.weight, d_)),
             gradient(all_, plan_.first.weight + d_, 2 * d_), 1, true);
    multiply(all_, 1, {d_, d_, hidden_}, transpose(weight(all_, plan_.first.weight + d_, 2 * d_)),
             kept(all_, plan_.dvalues, d_), gradient(all_, plan_.output.weight, d_));
  }
  // dE = sum_m B_m^T dM_m: the inner index runs over all maps' rows.
  void unfold_entering(const Layers& layers) {
    multiply(layers, 1, {d_, layers.columns, (1 + plan_.heads) * hidden_},
             transpose(kept(layers, plan_.maps, d_)), dmaps(layers, 0), dentering(layers));
  }
  // dQ = K dG^T / sqrt(d_k),  dK = Q dG / sqrt(d_k) + (q dg^T / sqrt(d_k))
  void unfold_scores(const Layers& layers) {
    const int k = layers.columns;
    const Matrix<const float> dg =
        folded(step_.folded_gradients, plan_.places(layers.first).scores, k, k * k);
    multiply(layers, plan_.heads, {d_, k, k}, side(layers, 1), transpose(dg), dside(layers, 0),
             plan_.score_scale);
    multiply(layers, plan_.heads, {d_, k, k}, side(layers, 0), dg, dside(layers, 1),
             plan_.score_scale, true);
  }
  // d[Wq; Wk] = d[Q; K] E^T + (dq e^T),  dE += [Wq; Wk]^T d[Q; K]
  void unfold_sides(const Layers& layers) {
    const int rows = 2 * plan_.heads * d_, k = layers.columns;
    multiply(layers, 1, {rows, d_, k}, dside(layers, 0), transpose(entering(layers)),
             gradient(layers, plan_.query_key.weight, d_), 1, true);
    multiply(layers, 1, {d_, k, rows}, transpose(weight(layers, plan_.query_key.weight, d_)),
             dside(layers, 0), dentering(layers), 1, true);
  }

 private:
  struct Size {
    int rows, columns, depth;
  };
  void multiply(const Layers& layers, int inner, Size size, Matrix<const float> a,
                Matrix<const float> b, Matrix<float> c, float alpha = 1, bool accumulate = false) {
    Product p;
    p.rows = size.rows;
    p.columns = size.columns;
    p.depth = size.depth;
    p.slots = slots_;
    p.outer = layers.count;
    p.inner = inner;
    p.a = a;
    p.b = b;
    p.c = c;
    p.alpha = alpha;
    p.accumulate = accumulate;
    enqueue_product(p, Precision::fp32, step_.slots, step_.workspace, step_.stream);
  }

  // Matrices of all slots and of the layers; `offset` is that of layer 0's tensor.
  template <class T>
  Matrix<T> tensor(T* base, const Layers& layers, int64_t offset, int64_t stride,
                   int64_t inner) const {
    return row_major(base + offset + layers.first * plan_.layer_stride, stride,
                     plan_.parameter_stride, plan_.layer_stride, inner);
  }
  Matrix<const float> weight(const Layers& layers, int64_t offset, int64_t stride,
                             int64_t inner = 0) const {
    return tensor(step_.parameters, layers, offset, stride, inner);
  }
  Matrix<float> gradient(const Layers& layers, int64_t offset, int64_t stride,
                         int64_t inner = 0) const {
    return tensor(step_.gradients, layers, offset, stride, inner);
  }
  // E, and its gradient.
  Matrix<const float> entering(const Layers& layers) const {
    return row_major(step_.parameters + plan_.entering(layers.first).weight, layers.columns,
                     plan_.parameter_stride, plan_.layer_stride);
  }
  Matrix<float> dentering(const Layers& layers) const {
    return row_major(step_.gradients + plan_.entering(layers.first).weight, layers.columns,
                     plan_.parameter_stride, plan_.layer_stride);
  }
  Matrix<float> kept(const Layers& layers, int64_t offset, int64_t stride,
                     int64_t inner = 0) const {
    return row_major(plan_.kept_layer(0, layers.first) + offset, stride,
                     plan_.depth * plan_.kept_stride, plan_.kept_stride, inner);
  }
  // Of each head Wq E (0) or Wk E (1); from 0 on, of all heads and both.
  Matrix<float> side(const Layers& layers, int keys) const {
    const int64_t size = int64_t{1} * d_ * layers.columns;
    return kept(layers, plan_.sides + keys * size, layers.columns, 2 * size);
  }
  Matrix<float> dside(const Layers& layers, int keys) const {
    const int64_t size = int64_t{1} * d_ * layers.columns;
    return kept(layers, plan_.dsides + keys * size, layers.columns, 2 * size);
  }
  // `place` is that of the first of the layers.
  template <class T>
  Matrix<T> folded(T* base, int64_t place, int64_t stride, int64_t inner) const {
    return row_major(base + place, stride, plan_.folded_size, plan_.places_stride, inner);
  }
  Matrix<const float> dmaps(const Layers& layers, int64_t map_rows) const {
    return folded(step_.folded_gradients, plan_.places(layers.first).maps, layers.columns,
                  map_rows * layers.columns);
  }

  const LargeFoldingPlan& plan_;
  const FoldingStep& step_;
  const int slots_, d_, hidden_, size_;
  const int64_t map_;
  const Layers all_;
};

// Layer 0 and the later ones.
std::vector<Layers> layers_of(const LargeFoldingPlan& plan) {
  std::vector<Layers> all = {{0, 1, plan.input}};
  if (plan.depth > 1) all.push_back({1, plan.depth - 1, plan.hidden});
  return all;
}

}  // namespace

LargeFolding::LargeFolding(const FleetShape& shape)
    : slots_(shape.slots), plan_(shape.spec), kept_(plan_.kept_stride * plan_.depth * shape.slots) {
  plan_.kept = kept_.data();
}

int64_t LargeFolding::bytes(const FleetShape& shape) {
  return LargeFoldingPlan(shape.spec).kept_stride * shape.spec.depth * shape.slots *
         static_cast<int64_t>(sizeof(float));
}

void LargeFolding::enqueue_fold(const FoldingStep& step) {
  Products products(plan_, slots_, step);
  products.fold_values();
  enqueue_fold_vectors(plan_, slots_, step);
  for (const Layers& layers : layers_of(plan_)) {
    products.fold_maps(layers);
    if (!plan_.from_data) continue;
    products.fold_sides(layers);
    products.fold_scores(layers);
  }
  if (plan_.from_data) enqueue_fold_score_bias(plan_, slots_, step);
}

void LargeFolding::enqueue_unfold(const FoldingStep& step) {
  Products products(plan_, slots_, step);
  enqueue_unfold_rows(plan_, slots_, step);
  for (const Layers& layers : layers_of(plan_)) {
    products.unfold_maps(layers);
    products.unfold_entering(layers);
    if (!plan_.from_data) continue;
    products.unfold_scores(layers);
    products.unfold_sides(layers);
  }
  products.unfold_values();
  enqueue_unfold_columns(plan_, slots_, step);
}

}  // namespace posattn::cuda
