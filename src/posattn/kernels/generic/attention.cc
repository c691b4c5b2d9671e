#include "posattn/kernels/generic/attention.h"

#include <algorithm>
#include <cmath>

#include "posattn/kernels/generic/rows.h"
#include "posattn/kernels/reference/operations.h"

namespace posattn::generic {
namespace {

// A block of rows of a causal matrix ends at the last node that one of them attends to.
struct Rows {
  int64_t first, count, end;
};

// visit(rows) for all of them: causal ones in blocks as high as the product kernel's, so that
// little of the other half is computed.
template <class Visitor>
void for_row_blocks(const HeadShape& shape, const Visitor& visit) {
  constexpr int64_t height = 12;
  if (!shape.causal) return visit(Rows{0, shape.nodes, shape.nodes});
  for (int64_t first = 0; first < shape.nodes; first += height) {
    const int64_t count = std::min(height, shape.nodes - first);
    visit(Rows{first, count, first + count});
  }
}

// a [rows, end] = or += x y^T, given transposed = y^T [size, nodes].
void outer_product(const HeadShape& s, const float* x, const float* transposed, Store store,
                   float* a, const TileKernels& kernels) {
  for_row_blocks(s, [&](Rows rows) {
    kernels.product(rows.count, rows.end, s.size, x + rows.first * s.stride, s.stride, 1,
                    transposed, s.nodes, a + rows.first * s.nodes, s.nodes, store, nullptr);
  });
}

// y = a x; and y = a^T x, where the rows of a block are columns of a, which rows `first` and later
// attend to.
void product_with(const HeadShape& s, const float* a, const float* x, float* y,
                  const TileKernels& kernels) {
  for_row_blocks(s, [&](Rows rows) {
    kernels.product(rows.count, s.size, rows.end, a + rows.first * s.nodes, s.nodes, 1, x, s.stride,
                    y + rows.first * s.stride, s.stride, Store::assign, nullptr);
  });
}
void transposed_product_with(const HeadShape& s, const float* a, const float* x, float* y,
                             const TileKernels& kernels) {
  for_row_blocks(s, [&](Rows rows) {
    kernels.product(rows.count, s.size, s.nodes - rows.first, a + rows.first * (s.nodes + 1), 1,
                    s.nodes, x + rows.first * s.stride, s.stride, y + rows.first * s.stride,
                    s.stride, Store::assign, nullptr);
  });
}

double scale_of(const HeadShape& shape) {
  return shape.factor != 0 ? shape.factor : 1 / std::sqrt(static_cast<double>(shape.size));
}

const float* transpose(const HeadShape& s, const float* x, std::vector<float>& scratch,
                       const TileKernels& kernels) {
  scratch.resize(s.size * s.nodes);
  kernels.transpose(s.nodes, s.size, x, s.stride, scratch.data(), s.nodes);
  return scratch.data();
}

}  // namespace

template <>
void head_scores(const HeadShape& s, const double* q, const double* k, const double* bias,
                 double* scores, std::vector<double>&, const TileKernels&) {
  if (bias != nullptr) std::copy_n(bias, s.nodes * s.nodes, scores);
  reference::product(false, true, s.nodes, s.nodes, s.size, scale_of(s), q, s.stride, k, s.stride,
                     bias != nullptr, scores, s.nodes);
}

template <>
void head_scores_gradient(const HeadShape& s, const double* q, const double* k, double* ds,
                          double* dq, double* dk, const TileKernels&) {
  for (int64_t i = 0; s.causal && i < s.nodes; ++i) {
    std::fill(ds + i * s.nodes + i + 1, ds + (i + 1) * s.nodes, 0.0);
  }
  reference::product(false, false, s.nodes, s.size, s.nodes, scale_of(s), ds, s.nodes, k, s.stride,
                     false, dq, s.stride);
  reference::product(true, false, s.nodes, s.size, s.nodes, scale_of(s), ds, s.nodes, q, s.stride,
                     false, dk, s.stride);
}

template <>
void attention_matrix(const HeadShape& s, const double* q, const double* k, const double* bias,
                      double* a, std::vector<double>& scratch, const TileKernels& kernels) {
  head_scores(s, q, k, bias, a, scratch, kernels);
  if (s.causal) mask_causal(s.nodes, a);
  reference::softmax_rows(s.nodes, s.nodes, a);
}

template <>
void attention_matrix_gradient(const HeadShape& s, const double* q, const double* k,
                               const double* a, double* da, double* dq, double* dk,
                               const TileKernels& kernels) {
  reference::softmax_rows_gradient(s.nodes, s.nodes, a, da);
  head_scores_gradient(s, q, k, da, dq, dk, kernels);
}

template <>
void mix(const HeadShape& s, const double* a, const double* v, double* y, const TileKernels&) {
  reference::product(false, false, s.nodes, s.size, s.nodes, 1, a, s.nodes, v, s.stride, false, y,
                     s.stride);
}

template <>
void mix_gradient(const HeadShape& s, const double* a, const double* v, const double* dy,
                  double* dv, bool accumulate, double* da, std::vector<double>&,
                  const TileKernels&) {
  reference::product(true, false, s.nodes, s.size, s.nodes, 1, a, s.nodes, dy, s.stride, false, dv,
                     s.stride);
  reference::product(false, true, s.nodes, s.nodes, s.size, 1, dy, s.stride, v, s.stride,
                     accumulate, da, s.nodes);
}

template <>
void head_scores(const HeadShape& s, const float* q, const float* k, const float* bias,
                 float* scores, std::vector<float>& scratch, const TileKernels& kernels) {
  const float* keys = transpose(s, k, scratch, kernels);
  const auto scale = static_cast<float>(scale_of(s));
  for (float& key : scratch) key *= scale;
  if (bias != nullptr) std::copy_n(bias, s.nodes * s.nodes, scores);
  outer_product(s, q, keys, bias == nullptr ? Store::assign : Store::add, scores, kernels);
}

template <>
void attention_matrix(const HeadShape& s, const float* q, const float* k, const float* bias,
                      float* a, std::vector<float>& scratch, const TileKernels& kernels) {
  head_scores(s, q, k, bias, a, scratch, kernels);
  if (!s.causal) return kernels.softmax_rows(s.nodes, s.nodes, s.nodes, a);
  for (int64_t i = 0; i < s.nodes; ++i) {
    kernels.softmax_rows(1, i + 1, s.nodes, a + i * s.nodes);
  }
}

template <>
void head_scores_gradient(const HeadShape& s, const float* q, const float* k, float* ds, float* dq,
                          float* dk, const TileKernels& kernels) {
  for (int64_t i = 0; s.causal && i < s.nodes; ++i) {
    std::fill(ds + i * s.nodes + i + 1, ds + (i + 1) * s.nodes, 0.0f);
  }
  product_with(s, ds, k, dq, kernels);
  transposed_product_with(s, ds, q, dk, kernels);
  const auto scale = static_cast<float>(scale_of(s));
  for (int64_t i = 0; i < s.nodes; ++i) {
    for (int64_t c = 0; c < s.size; ++c) {
      dq[i * s.stride + c] *= scale;
      dk[i * s.stride + c] *= scale;
    }
  }
}

template <>
void attention_matrix_gradient(const HeadShape& s, const float* q, const float* k, const float* a,
                               float* da, float* dq, float* dk, const TileKernels& kernels) {
  if (!s.causal) kernels.softmax_rows_gradient(s.nodes, s.nodes, s.nodes, a, da);
  for (int64_t i = 0; s.causal && i < s.nodes; ++i) {
    kernels.softmax_rows_gradient(1, i + 1, i + 1, a + i * s.nodes, da + i * s.nodes);
  }
  head_scores_gradient(s, q, k, da, dq, dk, kernels);
}

template <>
void mix(const HeadShape& s, const float* a, const float* v, float* y, const TileKernels& kernels) {
  product_with(s, a, v, y, kernels);
}

template <>
void mix_gradient(const HeadShape& s, const float* a, const float* v, const float* dy, float* dv,
                  bool accumulate, float* da, std::vector<float>& scratch,
                  const TileKernels& kernels) {
  transposed_product_with(s, a, dy, dv, kernels);
  const float* values = transpose(s, v, scratch, kernels);
  outer_product(s, dy, values, accumulate ? Store::add : Store::assign, da, kernels);
}

}  // namespace posattn::generic
