// Attention of one head of one sample for the block executor, in both precisions: plain loops for
// the reference; the tile kernels for float, which leave out what causal attention masks.
// q, k, v, y and their gradients are [nodes, size] with rows `stride` apart; a, da [nodes, nodes].
#pragma once

#include <cstdint>
#include <vector>

#include "posattn/kernels/cpu/tile_kernels.h"

namespace posattn::generic {

struct HeadShape {
  bool causal = false;  // node i attends to nodes 0..i
  int64_t nodes = 0, size = 0, stride = 0;
  double factor = 0;  // of q k^T; 0: 1 / sqrt(size)

  // Row `row` of matrices one below the other attends to nodes 0 .. end - 1.
  int64_t end(int64_t row) const { return causal ? row % nodes + 1 : nodes; }
};

// s = factor q k^T + bias, bias [nodes, nodes] or null, where node i attends to j; elsewhere it may
// hold anything finite.
template <class T>
void head_scores(const HeadShape& shape, const T* q, const T* k, const T* bias, T* s,
                 std::vector<T>& scratch, const TileKernels& kernels = tile_kernels());
// dq =, dk = from ds, which becomes 0 where no node attends.
template <class T>
void head_scores_gradient(const HeadShape& shape, const T* q, const T* k, T* ds, T* dq, T* dk,
                          const TileKernels& kernels = tile_kernels());

// a = softmax(factor q k^T + bias).
template <class T>
void attention_matrix(const HeadShape& shape, const T* q, const T* k, const T* bias, T* a,
                      std::vector<T>& scratch, const TileKernels& kernels = tile_kernels());
// dq =, dk = from da, which becomes the gradient of the scores.
template <class T>
void attention_matrix_gradient(const HeadShape& shape, const T* q, const T* k, const T* a, T* da,
                               T* dq, T* dk, const TileKernels& kernels = tile_kernels());

// y = a v.
template <class T>
void mix(const HeadShape& shape, const T* a, const T* v, T* y,
         const TileKernels& kernels = tile_kernels());
// dv = a^T dy; da = or += dy v^T, where node i attends to j; elsewhere it may hold anything finite.
template <class T>
void mix_gradient(const HeadShape& shape, const T* a, const T* v, const T* dy, T* dv,
                  bool accumulate, T* da, std::vector<T>& scratch,
                  const TileKernels& kernels = tile_kernels());

}  // namespace posattn::generic
