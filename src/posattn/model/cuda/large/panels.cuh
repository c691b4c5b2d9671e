// Weights on their way to the tensor core: panels of 64 outputs by a part of the depth, packed in
// shared memory in the order in which lanes need them. A block goes through the products of a tile
// in a fixed order, so the next panel, of the same or the next product, is read from global memory
// while the tensor core works on the one before.
#pragma once

#include "posattn/model/cuda/large/tile.cuh"

namespace posattn::cuda::large {

// W [outputs, depth], or, transposed, the transpose of what lies there as [depth, outputs].
struct Weights {
  const float* data;
  int outputs, depth;
  bool transposed;

  // W(n, k) and W(n, k + 1), zero outside.
  __device__ float2 pair(int n, int k) const {
    float2 pair = make_float2(0, 0);
    if (n >= outputs || k >= depth) return pair;
    if (transposed) {
      pair.x = data[k * outputs + n];
      if (k + 1 < depth) pair.y = data[(k + 1) * outputs + n];
    } else if (depth % 2 == 0) {
      pair = load2(data + n * depth + k);
    } else {
      pair.x = data[n * depth + k];
      if (k + 1 < depth) pair.y = data[n * depth + k + 1];
    }
    return pair;
  }
  // pair(n, k) and pair(n, k + 8), all of them inside and the depth even.
  __device__ float4 inner_quad(int n, int k) const {
    if (transposed) {
      const float* place = data + k * outputs + n;
      return make_float4(place[0], place[outputs], place[8 * outputs], place[9 * outputs]);
    }
    const float2 low = load2(data + n * depth + k), high = load2(data + n * depth + k + 8);
    return make_float4(low.x, low.y, high.x, high.y);
  }
};

// Order: Weights operator()(int product), int products(): what a tile needs, and in which order; of
// each product all outputs of the first 64, then of the next.
template <bool exact, int tiles, class Order>
class Panels {
 public:
  static constexpr int depth = 32 / tiles;
  static constexpr int floats = 2 * 64 * depth;  // of shared memory: two panels

  __device__ Panels(float* shared, const Order& order)
      : order_(order), shared_(shared), weights_(order(0)) {
    fetch();
  }

  // Of the panel that comes next.
  __device__ const Weights& weights() const { return weights_; }
  __device__ int first_output() const { return base_; }

  // Ends with a barrier: what threads wrote to shared memory before may be read now. The panel
  // stays until the next call but one.
  __device__ const float* next() {
    float* panel = shared_ + current_ * (floats / 2);
    current_ ^= 1;
#pragma unroll
    for (int i = 0; i < shares; ++i) {
      const int index = static_cast<int>(threadIdx.x) + threads * i;
      if (index >= quads) break;
      const float4 w = fetched_[i];
      store4(panel + 4 * index, operand<exact>(w.x), operand<exact>(w.y), operand<exact>(w.z),
             operand<exact>(w.w));
    }
    first_ += depth;
    if (first_ >= weights_.depth) {
      first_ = 0;
      base_ += 64;
      if (base_ >= weights_.outputs) {
        base_ = 0;
        product_ = product_ + 1 < order_.products() ? product_ + 1 : 0;
        weights_ = order_(product_);
      }
    }
    fetch();
    __syncthreads();
    return panel;
  }

 private:
  static constexpr int quads = 64 * depth / 4;
  static constexpr int shares = (quads + threads - 1) / threads;

  __device__ void fetch() {
    const bool whole = base_ + 64 <= weights_.outputs && first_ + depth <= weights_.depth &&
                       weights_.depth % 2 == 0;
#pragma unroll
    for (int i = 0; i < shares; ++i) {
      const int index = static_cast<int>(threadIdx.x) + threads * i;
      if (index >= quads) break;
      // As panel_fragments() reads them.
      const int g = (index >> 2) & 7, t = index & 3, eight = (index >> 5) & 7;
      const int n = base_ + 8 * eight + g, k = first_ + 16 * (index >> 8) + 2 * t;
      if (whole) {
        fetched_[i] = weights_.inner_quad(n, k);
      } else {
        const float2 low = weights_.pair(n, k), high = weights_.pair(n, k + 8);
        fetched_[i] = make_float4(low.x, low.y, high.x, high.y);
      }
    }
  }

  Order order_;
  float* shared_;
  Weights weights_;
  int product_ = 0, base_ = 0, first_ = 0;
  int current_ = 0;
  float4 fetched_[shares] = {};
};

// The fragments of eight outputs, `eight` of a panel, for sixteen of its depth: {x, y} for the
// first eight of them, {z, w} for the others.
__device__ inline float4 panel_fragments(const float* panel, int sixteen, int eight, int lane) {
  return load4(panel + ((sixteen * 8 + eight) * 32 + lane) * 4);
}

}  // namespace posattn::cuda::large
