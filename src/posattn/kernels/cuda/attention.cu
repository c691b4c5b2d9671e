// A warp owns 16 nodes: queries, whose scores are rows of its fragments, or keys, whose scores are
// rows of the transposed ones.
#include <algorithm>
#include <cmath>

#include "posattn/kernels/cuda/attention.h"
#include "posattn/kernels/cuda/attention_tiles.cuh"
#include "posattn/kernels/cuda/lanes.cuh"

namespace posattn::cuda {
namespace {

// What a block works on: a head of a sample.
struct AttentionPlace {
  __device__ AttentionPlace(const AttentionShape& s, const SlotStep* steps)
      : slot(blockIdx.y),
        sample(static_cast<int>(blockIdx.x) / s.heads),
        head(static_cast<int>(blockIdx.x) % s.heads),
        query(2 * head * s.key_size),
        key(query + s.key_size),
        value(2 * s.heads * s.key_size + head * s.head_size),
        first_absent(s.attended.absent_end == 0 ? 0 : steps[slot].real_nodes),
        absent_end(s.attended.absent_end),
        causal(s.attended.causal_nodes != 0),
        nodes(s.nodes),
        scale(rsqrtf(static_cast<float>(s.key_size))) {}

  // Row of node 0; nodes are stride * samples apart.
  template <class T>
  __device__ T* of(Rows<T> rows, int column) const {
    return rows.data + slot * rows.slot_stride + sample * rows.stride + column;
  }
  __device__ bool attends(int query_node, int key_node) const {
    return key_node < nodes && (!causal || key_node <= query_node) &&
           (key_node < first_absent || key_node >= absent_end);
  }

  int slot, sample, head;
  int query, key, value;  // first columns
  int first_absent, absent_end;
  bool causal;
  int nodes;
  float scale;
};

template <int key_fragments, int head_fragments, bool exact>
__global__ void __launch_bounds__(most_threads, key_fragments > 4 ? 1 : 2)
    attention_kernel(AttentionShape shape, Rows<const float> source, Rows<float> mixed,
                     Rows<float> totals, const SlotStep* steps) {
  using Keys = SharedMatrix<key_fragments>;
  using Values = SharedMatrix<head_fragments>;
  if (rests(steps, blockIdx.y)) return;
  const AttentionPlace place(shape, steps);
  const int nodes = shape.nodes;
  auto* const queries = reinterpret_cast<float*>(dynamic_shared());
  float* const keys = queries + Keys::floats(nodes);
  float* const values = keys + Keys::floats(nodes);
  const int64_t stride = source.stride * shape.samples;
  Keys::load(queries, place.of(source, place.query), stride, nodes, shape.key_size);
  Keys::load(keys, place.of(source, place.key), stride, nodes, shape.key_size);
  Values::load(values, place.of(source, place.value), stride, nodes, shape.head_size);
  commit_copies();
  wait_copies<0>();
  __syncthreads();

  const int lane = threadIdx.x % 32, first = static_cast<int>(threadIdx.x) / 32 * own_nodes;
  const int node = first + lane / 4;
  const int end = place.causal ? min(nodes, first + own_nodes) : nodes;  // of what is attended
  const LeftOperand<key_fragments, exact> own(queries, first);
  // What the keys so far give: the largest score, the sum of exponentials relative to it, and the
  // mixed values.
  float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  Sums<exact> sums[head_fragments];
#pragma unroll 1
  for (int key = 0; key < end; key += 16) {
    float scores[2][4] = {}, now[2] = {largest[0], largest[1]};
    multiply_nodes(scores, own, keys, key);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int f = i / 4, e = i % 4;
      const bool attended = place.attends(node + e / 2 * 8, key + 8 * f + lane % 4 * 2 + e % 2);
      scores[f][e] = attended ? place.scale * scores[f][e] : -INFINITY;
      now[e / 2] = fmaxf(now[e / 2], scores[f][e]);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {  // node 0 is attended: from the first keys on, finite
      now[half] = fmaxf(now[half], __shfl_xor_sync(all_lanes, now[half], 1));
      now[half] = fmaxf(now[half], __shfl_xor_sync(all_lanes, now[half], 2));
      const float shrink = __expf(largest[half] - now[half]);
      largest[half] = now[half];
      sum[half] *= shrink;
#pragma unroll
      for (Sums<exact>& of : sums) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          of.whole[e] *= shrink;
          of.low[e] *= shrink;
          of.cross[e] *= shrink;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float& score = scores[i / 4][i % 4];
      score = __expf(score - largest[i % 4 / 2]);
      sum[i % 4 / 2] += score;
    }
    mix_nodes(sums, scores, values, key);
  }
#pragma unroll
  for (float& x : sum) {
    x += __shfl_xor_sync(all_lanes, x, 1);
    x += __shfl_xor_sync(all_lanes, x, 2);
  }
  const int column = place.head * shape.head_size;
  write_nodes(sums, place.of(mixed, column), mixed.stride * shape.samples, first, nodes,
              shape.head_size, 1 / sum[0], 1 / sum[1]);
  if (lane % 4 != 0) return;
  float* total = place.of(totals, place.head);
  for (int half = 0; half < 2; ++half) {
    if (node + 8 * half >= nodes) continue;
    total[(node + 8 * half) * totals.stride * shape.samples] = largest[half] + logf(sum[half]);
  }
}

// With P the attention and dP = dmixed V^T: dS = P (dP - <dP, P>), where <dP, P> of a query is
// <dmixed, mixed>. First a warp owns queries and finds dQ = dS K, then it owns keys and finds
// dK = dS^T Q and dV = P^T dmixed.
template <int key_fragments, int head_fragments, bool exact>
__global__ void __launch_bounds__(most_threads, key_fragments > 4 ? 1 : 2)
    attention_gradient_kernel(AttentionShape shape, Rows<const float> source,
                              Rows<const float> mixed, Rows<const float> totals,
                              Rows<const float> dmixed, Rows<float> dsource,
                              const SlotStep* steps) {
  using Keys = SharedMatrix<key_fragments>;
  using Values = SharedMatrix<head_fragments>;
  if (rests(steps, blockIdx.y)) return;
  const AttentionPlace place(shape, steps);
  const int nodes = shape.nodes;
  auto* const queries = reinterpret_cast<float*>(dynamic_shared());
  float* const keys = queries + Keys::floats(nodes);
  float* const values = keys + Keys::floats(nodes);
  float* const dmixes = values + Values::floats(nodes);
  float* const logarithms = dmixes + Values::floats(nodes);  // of each query
  float* const products = logarithms + most_nodes;           // <dmixed, mixed> of each query
  const int64_t stride = source.stride * shape.samples;
  const int column = place.head * shape.head_size;
  const float* dmixed_of = place.of(dmixed, column);
  Keys::load(queries, place.of(source, place.query), stride, nodes, shape.key_size);
  Keys::load(keys, place.of(source, place.key), stride, nodes, shape.key_size);
  Values::load(values, place.of(source, place.value), stride, nodes, shape.head_size);
  Values::load(dmixes, dmixed_of, dmixed.stride * shape.samples, nodes, shape.head_size);
  commit_copies();
  const int lane = threadIdx.x % 32;
  for (int node = threadIdx.x; node < most_nodes; node += static_cast<int>(blockDim.x)) {
    const bool inside = node < nodes;
    logarithms[node] =
        inside ? place.of(totals, place.head)[node * totals.stride * shape.samples] : 0.0f;
    float product = 0;
    if (inside) {
      const float* d = dmixed_of + node * dmixed.stride * shape.samples;
      const float* m = place.of(mixed, column) + node * mixed.stride * shape.samples;
      for (int c = 0; c < shape.head_size; c += 4) {
        const float4 x = *reinterpret_cast<const float4*>(d + c);
        const float4 y = *reinterpret_cast<const float4*>(m + c);
        product += x.x * y.x + x.y * y.y + x.z * y.z + x.w * y.w;
      }
    }
    products[node] = product;
  }
  wait_copies<0>();
  __syncthreads();

  const int first = static_cast<int>(threadIdx.x) / 32 * own_nodes, node = first + lane / 4;
  float* const to = place.of(dsource, 0);
  const int64_t to_stride = dsource.stride * shape.samples;
  {
    const LeftOperand<key_fragments, exact> query(queries, first);
    const LeftOperand<head_fragments, exact> dmix(dmixes, first);
    const float logarithm[2] = {logarithms[node], logarithms[node + 8]};
    const float product[2] = {products[node], products[node + 8]};
    const int end = place.causal ? min(nodes, first + own_nodes) : nodes;
    Sums<exact> dquery[key_fragments];
#pragma unroll 1
    for (int key = 0; key < end; key += 16) {
      float scores[2][4] = {}, dattention[2][4] = {};
      multiply_nodes(scores, query, keys, key);
      multiply_nodes(dattention, dmix, values, key);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int f = i / 4, e = i % 4;
        const bool attended = place.attends(node + e / 2 * 8, key + 8 * f + lane % 4 * 2 + e % 2);
        const float weight = __expf(place.scale * scores[f][e] - logarithm[e / 2]);
        scores[f][e] = attended ? weight * (dattention[f][e] - product[e / 2]) : 0.0f;
      }
      mix_nodes(dquery, scores, keys, key);
    }
    write_nodes(dquery, to + place.query, to_stride, first, nodes, shape.key_size, place.scale,
                place.scale);
  }
  const LeftOperand<key_fragments, exact> key(keys, first);
  const LeftOperand<head_fragments, exact> value(values, first);
  Sums<exact> dkey[key_fragments], dvalue[head_fragments];
#pragma unroll 1
  for (int query = place.causal ? first : 0; query < nodes; query += 16) {
    float scores[2][4] = {}, dattention[2][4] = {}, weights[2][4];
    multiply_nodes(scores, key, queries, query);
    multiply_nodes(dattention, value, dmixes, query);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int f = i / 4, e = i % 4, query_node = query + 8 * f + lane % 4 * 2 + e % 2;
      const bool attended = query_node < nodes && place.attends(query_node, node + e / 2 * 8);
      weights[f][e] = attended ? __expf(place.scale * scores[f][e] - logarithms[query_node]) : 0.0f;
      scores[f][e] = weights[f][e] * (dattention[f][e] - products[query_node]);
    }
    mix_nodes(dvalue, weights, dmixes, query);
    mix_nodes(dkey, scores, queries, query);
  }
  write_nodes(dkey, to + place.key, to_stride, first, nodes, shape.key_size, place.scale,
              place.scale);
  write_nodes(dvalue, to + place.value, to_stride, first, nodes, shape.head_size, 1, 1);
}

template <int key_fragments, int head_fragments>
size_t shared_bytes(int nodes, int matrices_of_each, int vectors) {
  const int64_t floats =
      matrices_of_each *
      (SharedMatrix<key_fragments>::pitch + SharedMatrix<head_fragments>::pitch) *
      ceil_div(nodes, 16) * 16;
  return static_cast<size_t>(floats + vectors * most_nodes) * sizeof(float);
}

dim3 block_of(const AttentionShape& shape) {
  return dim3(static_cast<unsigned>(ceil_div(shape.nodes, own_nodes) * 32));
}
dim3 grid_of(const AttentionShape& shape) {
  return dim3(static_cast<unsigned>(shape.samples * shape.heads), shape.slots);
}

}  // namespace

bool attention_fits(int32_t nodes, int32_t heads, int32_t key_size, int32_t head_size) {
  if (nodes > most_nodes || key_size > 64 || head_size > 64 || key_size % 4 != 0 ||
      head_size % 4 != 0 || heads <= 0) {
    return false;
  }
  size_t bytes = 0;  // of the gradient, which takes more
  with_fragments(std::max(key_size, head_size), Precision::fp32, [&](auto fragments, auto) {
    constexpr int size = decltype(fragments)::value;
    bytes = shared_bytes<size, size>(nodes, 2, 2);
  });
  return bytes <= static_cast<size_t>(device_limits().shared_bytes);
}

void enqueue_attention(const AttentionShape& shape, Rows<const float> source, Rows<float> mixed,
                       Rows<float> totals, Precision precision, const SlotStep* steps,
                       cudaStream_t stream) {
  with_fragments(
      std::max(shape.key_size, shape.head_size), precision, [&](auto fragments, auto exact) {
        constexpr int size = decltype(fragments)::value;
        const auto kernel = attention_kernel<size, size, decltype(exact)::value>;
        allow_shared_bytes(kernel, shared_bytes<size, size>(most_nodes, 2, 0));
        launch(kernel, grid_of(shape), block_of(shape), shared_bytes<size, size>(shape.nodes, 2, 0),
               stream, shape, source, mixed, totals, steps);
      });
}

void enqueue_attention_gradient(const AttentionShape& shape, Rows<const float> source,
                                Rows<const float> mixed, Rows<const float> totals,
                                Rows<const float> dmixed, Rows<float> dsource, Precision precision,
                                const SlotStep* steps, cudaStream_t stream) {
  with_fragments(
      std::max(shape.key_size, shape.head_size), precision, [&](auto fragments, auto exact) {
        constexpr int size = decltype(fragments)::value;
        const auto kernel = attention_gradient_kernel<size, size, decltype(exact)::value>;
        allow_shared_bytes(kernel, shared_bytes<size, size>(most_nodes, 2, 2));
        launch(kernel, grid_of(shape), block_of(shape), shared_bytes<size, size>(shape.nodes, 2, 2),
               stream, shape, source, mixed, totals, dmixed, dsource, steps);
      });
}

}  // namespace posattn::cuda
