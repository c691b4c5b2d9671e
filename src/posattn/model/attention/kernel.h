// Kernelised attention with relative positions (arXiv 2106.12566): queries and keys are divided by
// their size, and random features of them stand for the exponential of their products.
//   phi(x) = exp(-|x|^2 / 2) / sqrt(m) exp(Omega x),   E phi(x) . phi(y) = exp(x . y)
//   A = C o F / row sums,  F = phi(Q) phi(K)^T,  C_ij = exp(B_ij - max_j B_ij)
// Omega ~ N(0, 1) is drawn once, stored, and not trained. Without the division the variance of
// phi(x) . phi(y) grows as exp(4 |x|^2), and training is unstable.
//   dB = A o (dA - sum_j A dA),  dF = dB / F,  dx' = (dphi o phi) Omega for unit x'
#pragma once

#include "posattn/model/attention/rows.h"

namespace posattn {

// For long inputs whose bias is by distance, or that have none: C is a Toeplitz matrix, so
//   o_i = sum_f phi(q_i)_f (C G_f)_i,  G_f = phi(k)_f [v, 1]
// with m (d_v + 1) products by Fourier transforms, which cost O(n log n) each; the last column is
// what rows are divided by. Null where matrices cost less, or where rounding would show.
std::unique_ptr<LongMixing<float>> long_kernel(const AttentionBlock& block,
                                               const NodeContext<float>& nodes);

}  // namespace posattn
