#include "posattn/model/tiles/positional_attention.h"

#include <algorithm>
#include <cmath>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/model/tiles/mixing.h"

namespace posattn::engine {

void rotate_rows(int64_t rows, int64_t parts, int64_t size, const ActiveNodes& active, int sign,
                 float* x, int64_t stride) {
  const int nodes = active.count();
  // Angles depend on node and pair only: one table for all rows.
  std::vector<float> table(nodes * size);
  for (int i = 0; i < nodes; ++i) {
    for (int64_t c = 0; c + 1 < size; c += 2) {
      const double angle = sign * active.index[i] *
                           std::pow(10000.0, -static_cast<double>(c) / static_cast<double>(size));
      table[i * size + c] = static_cast<float>(std::cos(angle));
      table[i * size + c + 1] = static_cast<float>(std::sin(angle));
    }
  }
  for (int64_t r = 0, node = 0; r < rows; ++r, node = node + 1 == nodes ? 0 : node + 1) {
    const float* turn = &table[node * size];
    for (int64_t part = 0; part < parts; ++part) {
      float* v = x + r * stride + part * size;
      for (int64_t c = 0; c + 1 < size; c += 2) {
        const float first = v[c], second = v[c + 1];
        v[c] = first * turn[c] - second * turn[c + 1];
        v[c + 1] = first * turn[c + 1] + second * turn[c];
      }
    }
  }
}

PositionalAttention::PositionalAttention(const ModelSpec& spec, const ParameterLayout& layout,
                                         int layer)
    : spec_(spec) {
  if (spec.scores == Scores::direct) {
    scores_ = layout.at(names::of_layer(layer, names::scores)).offset;
  } else if (spec.scores == Scores::distance) {
    scores_ = layout.at(names::of_layer(layer, names::relative_scores)).offset;
    if (spec.scratch_nodes > 0) {
      scratch_scores_ = layout.at(names::of_layer(layer, names::scratch_scores)).offset;
    }
  } else {
    query_key_ = LinearMap::find(layout, names::of_layer(layer, names::query_key));
  }
}

void PositionalAttention::compute(const Parameters<float>& parameters, const ActiveNodes& active,
                                  AttentionForm form) {
  nodes_ = active.count();
  active_ = active;
  weights_ = parameters.values().data();
  if (spec_.has_query_key()) make_queries_and_keys(parameters);
  mixings_.clear();
  if (form == AttentionForm::cheapest && make_mixings()) {
    attention_ = {};
    return;
  }
  attention_.resize(spec_.heads * head_stride());
  for (int h = 0; h < spec_.heads; ++h) {
    attention_rows(h, 0, 1, nodes_, &attention_[h * head_stride()]);
  }
}

bool PositionalAttention::make_mixings() {
  constexpr int few_nodes = 512;  // below, factors save nothing
  for (int h = 0; h < spec_.heads; ++h) {
    std::unique_ptr<Mixing> mixing;
    const generic::RelativeShape shape = relative_shape();
    if (spec_.scores == Scores::distance && RelativeMixing::pays(shape, spec_.head_size())) {
      mixing = RelativeMixing::make(shape, relative_table(h), scratch_table(h));
    }
    if (!mixing && nodes_ >= few_nodes) {
      mixing = FactoredMixing::make(nodes_, stride(),
                                    [&](int64_t first, int64_t step, int64_t count, float* rows) {
                                      attention_rows(h, first, step, count, rows);
                                    });
    }
    if (!mixing) {
      mixings_.clear();
      return false;
    }
    mixings_.push_back(std::move(mixing));
  }
  return true;
}

void PositionalAttention::attention_rows(int head, int64_t first, int64_t step, int64_t count,
                                         float* out) const {
  const int64_t ld = stride(), dk = spec_.key_size();
  if (spec_.scores == Scores::direct) {
    const int64_t all = spec_.nodes();
    for (int64_t r = 0; r < count; ++r) {
      const float* row = weights_ + scores_ + (head * all + active_.index[first + r * step]) * all;
      for (int j = 0; j < nodes_; ++j) out[r * ld + j] = row[active_.index[j]];
    }
  } else if (spec_.scores == Scores::distance) {
    for (int64_t r = 0; r < count; ++r) {
      generic::relative_scores_row(relative_shape(), relative_table(head), scratch_table(head),
                                   static_cast<int32_t>(first + r * step), out + r * ld);
    }
  } else {
    const int64_t total = query_key_.out;
    const float* query = &query_key_values_[head * 2 * dk];
    gemm(false, true, count, nodes_, dk, 1.0f / std::sqrt(static_cast<float>(dk)),
         query + first * total, step * total, query + dk, total, 0.0f, out, ld);
  }
  tile_kernels().softmax_rows(count, nodes_, ld, out);
}

void PositionalAttention::make_queries_and_keys(const Parameters<float>& parameters) {
  const int64_t p = spec_.encoding_size, total = query_key_.out, dk = spec_.key_size();
  query_key_values_.resize(nodes_ * total);
  const float* weight = weights_ + query_key_.weight;
  const float* bias = weights_ + query_key_.bias;
  for (int i = 0; i < nodes_; ++i) std::copy_n(bias, total, &query_key_values_[i * total]);
  if (spec_.encoding == Encoding::one_hot) {
    // P is a set of unit rows, so P W^T picks columns of W: a transposed copy, no product.
    constexpr int64_t block = 32;
    for (int64_t c0 = 0; c0 < total; c0 += block) {
      for (int i = 0; i < nodes_; ++i) {
        for (int64_t c = c0; c < std::min(c0 + block, total); ++c) {
          query_key_values_[i * total + c] += weight[c * p + active_.index[i]];
        }
      }
    }
  } else {
    const std::vector<float> all = positions_of(spec_, parameters);
    positions_.resize(nodes_ * p);
    for (int i = 0; i < nodes_; ++i) {
      std::copy_n(&all[int64_t{1} * active_.index[i] * p], p, &positions_[i * p]);
    }
    gemm(false, true, nodes_, total, p, 1, positions_.data(), p, weight, p, 1,
         query_key_values_.data(), total);
  }
  if (spec_.rotation == Rotation::rope) {
    rotate_rows(nodes_, 2 * spec_.heads, dk, active_, 1, query_key_values_.data(), total);
  }
}

void PositionalAttention::gradient(float* da, Parameters<float>& out, float* dpositions) {
  const int64_t ld = stride(), dk = spec_.key_size();
  tile_kernels().softmax_rows_gradient(spec_.heads * nodes_, nodes_, ld, attention_.data(), da);
  float* values = out.values().data();
  if (spec_.scores == Scores::direct) {
    const int64_t all = spec_.nodes();
    std::fill_n(values + scores_, spec_.heads * all * all, 0.0f);
    for (int h = 0; h < spec_.heads; ++h) {
      for (int i = 0; i < nodes_; ++i) {
        float* row = values + scores_ + (h * all + active_.index[i]) * all;
        for (int j = 0; j < nodes_; ++j) {
          row[active_.index[j]] = da[h * head_stride() + i * ld + j];
        }
      }
    }
    return;
  }
  if (spec_.scores == Scores::distance) {
    const generic::RelativeShape shape = relative_shape();
    std::fill_n(values + scores_, spec_.heads * shape.distances(), 0.0f);
    std::fill_n(values + scratch_scores_, spec_.heads * shape.scratch_size(), 0.0f);
    for (int h = 0; h < spec_.heads; ++h) {
      generic::relative_scores_gradient(shape, da + h * head_stride(), ld,
                                        values + scores_ + h * shape.distances(),
                                        values + scratch_scores_ + h * shape.scratch_size());
    }
    return;
  }
  const int64_t p = spec_.encoding_size, total = query_key_.out;
  const float scale = 1.0f / std::sqrt(static_cast<float>(dk));
  Buffer<float> dqk(nodes_ * total);
  for (int h = 0; h < spec_.heads; ++h) {
    const float* query = &query_key_values_[h * 2 * dk];
    float* dquery = &dqk[h * 2 * dk];
    const float* ds = da + h * head_stride();
    gemm(false, false, nodes_, dk, nodes_, scale, ds, ld, query + dk, total, 0, dquery, total);
    gemm(true, false, nodes_, dk, nodes_, scale, ds, ld, query, total, 0, dquery + dk, total);
  }
  if (spec_.rotation == Rotation::rope)
    rotate_rows(nodes_, 2 * spec_.heads, dk, active_, -1, dqk.data(), total);
  float* dweight = values + query_key_.weight;
  float* dbias = values + query_key_.bias;
  std::fill_n(dbias, total, 0.0f);
  tile_kernels().column_sums(nodes_, total, dqk.data(), total, dbias);
  if (spec_.encoding == Encoding::one_hot) {
    std::fill_n(dweight, total * p, 0.0f);
    constexpr int64_t block = 32;
    for (int64_t c0 = 0; c0 < total; c0 += block) {
      for (int i = 0; i < nodes_; ++i) {
        for (int64_t c = c0; c < std::min(c0 + block, total); ++c) {
          dweight[c * p + active_.index[i]] = dqk[i * total + c];
        }
      }
    }
    return;
  }
  gemm(true, false, total, p, nodes_, 1, dqk.data(), total, positions_.data(), p, 0, dweight, p);
  if (dpositions) {
    for (int i = 0; i < nodes_; ++i) {
      gemm(false, false, 1, p, total, 1, &dqk[i * total], total, weights_ + query_key_.weight, p, 1,
           dpositions + int64_t{1} * active_.index[i] * p, p);
    }
  }
}

double PositionalAttention::work() const {
  if (!spec_.has_query_key()) return 0;
  const double n = spec_.nodes(), dk = spec_.key_size(), h = spec_.heads;
  return n * spec_.encoding_size * 2 * dk * h + h * n * n * dk;
}

}  // namespace posattn::engine
