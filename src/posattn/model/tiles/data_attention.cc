#include "posattn/model/tiles/data_attention.h"

#include <algorithm>

#include "posattn/kernels/cpu/tile_kernels.h"

namespace posattn::engine {

DataAttention::DataAttention(int nodes, int heads, int64_t key_size, int64_t value_size)
    : most_nodes_(nodes),
      nodes_(nodes),
      heads_(heads),
      key_size_(key_size),
      value_size_(value_size) {}

int64_t DataAttention::kept_size(int samples) const {
  if (!has_gradient_) return 0;
  // A shorter batch of a model whose matrices are not kept may still be.
  return samples * matrices_size(keeps_all() ? most_nodes_ : std::min(most_nodes_, kept_nodes));
}

int64_t DataAttention::scratch_size() const {
  const int64_t ld = padded(most_nodes_);
  const int64_t few = std::min(most_nodes_, kept_nodes), block = std::min<int64_t>(few, most_rows);
  // K^T, V^T and a row of ones, dA and A of a block, [dy | -<dy, y>] of it.
  return (key_size_ + value_size_ + 1) * ld + 2 * std::max(few * padded(few), block * ld) +
         few * padded(value_size_ + 1);
}

int64_t DataAttention::whole_columns() const {
  const int64_t lanes = tile_kernels().lanes;
  return (nodes_ + lanes - 1) / lanes * lanes;
}

void DataAttention::rows(int64_t count, const float* q, int64_t q_stride,
                         const float* transposed_keys, const float* offset, float* a) const {
  const TileKernels& kernels = tile_kernels();
  if (offset != nullptr) std::copy_n(offset, count * stride(), a);
  kernels.product(count, whole_columns(), key_size_, q, q_stride, 1, transposed_keys, stride(), a,
                  stride(), offset != nullptr ? Store::add : Store::assign, nullptr);
  kernels.softmax_rows(count, nodes_, stride(), a);
}

void DataAttention::forward(int samples, Headed<const float> q, Headed<const float> k,
                            Headed<const float> v, Headed<float> y, float* kept, float* scratch,
                            ScoreOffset offset) const {
  const TileKernels& kernels = tile_kernels();
  float* transposed_keys = scratch;
  float* block_rows = scratch + key_size_ * stride();
  for (int64_t s = 0; s < samples; ++s) {
    const int64_t first = s * nodes_;
    for (int h = 0; h < heads_; ++h) {
      if (h == 0 || k.head_offset != 0) {
        kernels.transpose(nodes_, key_size_, k.at(first, h), k.stride, transposed_keys, stride());
      }
      for (int64_t i = 0; i < nodes_; i += row_block()) {
        const int64_t count = std::min<int64_t>(row_block(), nodes_ - i);
        float* a = keeps() ? kept + ((s * heads_ + h) * nodes_ + i) * stride() : block_rows;
        rows(count, q.at(first + i, h), q.stride, transposed_keys,
             offset ? offset.scores + offset_at(h, i) : nullptr, a);
        kernels.product(count, value_size_, nodes_, a, stride(), 1, v.at(first, h), v.stride,
                        y.at(first + i, h), y.stride, Store::assign, nullptr);
      }
    }
  }
}

void DataAttention::scores_gradient(int64_t count, const float* a, const float* y, int64_t y_stride,
                                    const float* dy, int64_t dy_stride,
                                    const float* transposed_values, float* with_dots,
                                    float* da) const {
  const TileKernels& kernels = tile_kernels();
  const int64_t ld = stride();
  if (nodes_ < few_nodes) {
    kernels.product(count, whole_columns(), value_size_, dy, dy_stride, 1, transposed_values, ld,
                    da, ld, Store::assign, nullptr);
    kernels.softmax_rows_gradient(count, nodes_, ld, a, da);
    return;
  }
  const int64_t wide = value_size_ + 1, wide_stride = padded(wide);
  kernels.with_dots(count, value_size_, dy, dy_stride, y, y_stride, with_dots, wide_stride);
  kernels.product(count, whole_columns(), wide, with_dots, wide_stride, 1, transposed_values, ld,
                  da, ld, Store::times, a);
}

void DataAttention::backward(int samples, Headed<const float> q, Headed<const float> k,
                             Headed<const float> v, Headed<const float> y, Headed<const float> dy,
                             Headed<float> dq, Headed<float> dk, Headed<float> dv,
                             const float* kept, float* scratch, ScoreOffset offset) const {
  const TileKernels& kernels = tile_kernels();
  float* transposed_keys = scratch;
  float* transposed_values = transposed_keys + key_size_ * stride();
  float* da = transposed_values + (value_size_ + 1) * stride();
  float* block_rows = da + row_block() * stride();
  float* with_dots = block_rows + row_block() * stride();
  std::fill_n(transposed_values + value_size_ * stride(), nodes_, 1.0f);
  const int64_t ld = stride();
  for (int64_t s = 0; s < samples; ++s) {
    const int64_t first = s * nodes_;
    for (int h = 0; h < heads_; ++h) {
      if (!keeps() && (h == 0 || k.head_offset != 0)) {
        kernels.transpose(nodes_, key_size_, k.at(first, h), k.stride, transposed_keys, ld);
      }
      if (h == 0 || v.head_offset != 0) {
        kernels.transpose(nodes_, value_size_, v.at(first, h), v.stride, transposed_values, ld);
      }
      for (int64_t i = 0; i < nodes_; i += row_block()) {
        const int64_t count = std::min<int64_t>(row_block(), nodes_ - i);
        const float* a = kept + ((s * heads_ + h) * nodes_ + i) * ld;
        if (!keeps()) {
          rows(count, q.at(first + i, h), q.stride, transposed_keys,
               offset ? offset.scores + offset_at(h, i) : nullptr, block_rows);
          a = block_rows;
        }
        // dS from dY V^T; dQ = dS K; dK += dS^T Q; dV += A^T dY.
        scores_gradient(count, a, y.at(first + i, h), y.stride, dy.at(first + i, h), dy.stride,
                        transposed_values, with_dots, da);
        if (offset) {
          float* sums = offset.sums + offset_at(h, i);
          for (int64_t at = 0; at < count * ld; ++at) sums[at] += da[at];
        }
        kernels.product(count, key_size_, nodes_, da, ld, 1, k.at(first, h), k.stride,
                        dq.at(first + i, h), dq.stride, Store::assign, nullptr);
        kernels.product(nodes_, key_size_, count, da, 1, ld, q.at(first + i, h), q.stride,
                        dk.at(first, h), dk.stride, Store::add, nullptr);
        kernels.product(nodes_, value_size_, count, a, 1, ld, dy.at(first + i, h), dy.stride,
                        dv.at(first, h), dv.stride, Store::add, nullptr);
      }
    }
  }
}

void DataAttention::matrices(Headed<const float> q, Headed<const float> k, float* scratch,
                             float* out, ScoreOffset offset) const {
  const TileKernels& kernels = tile_kernels();
  float* transposed_keys = scratch;
  float* a = scratch + key_size_ * stride();
  for (int h = 0; h < heads_; ++h) {
    kernels.transpose(nodes_, key_size_, k.at(0, h), k.stride, transposed_keys, stride());
    for (int64_t i = 0; i < nodes_; ++i) {
      rows(1, q.at(i, h), q.stride, transposed_keys,
           offset ? offset.scores + offset_at(h, i) : nullptr, a);
      std::copy_n(a, nodes_, out + (h * nodes_ + i) * int64_t{nodes_});
    }
  }
}

}  // namespace posattn::engine
