#include "posattn/model/tiles/key_scores.h"

#include <algorithm>
#include <cmath>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/kernels/generic/rows.h"
#include "posattn/model/tiles/layer_maps.h"

namespace posattn::engine {
namespace {

std::vector<LinearBlock> map_of_positions(const AttentionBlock& block) {
  if (!block.positions || !block.positions->query_key) return {};
  return {*block.positions->query_key};
}

float dot(int64_t size, const float* x, const float* y) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t c = 0; c < size; ++c) sum += x[c] * y[c];
  return sum;
}

}  // namespace

bool KeyScores::needed(const ModelSpec& spec) {
  if (!spec.reads_data() || spec.weighting != Weighting::softmax) return false;
  const DataRow& row = row_of(spec.scores);
  // A row that changes queries sees them as they were before their factor.
  return row.in<float>().scores == nullptr &&
         (!row.changes_keys || row.factor(spec.key_size()) == 1) &&
         (spec.scores != Scores::dot || spec.source_scale != SourceScale::none ||
          spec.score_bias != ScoreBias::none);
}

KeyScores::KeyScores(const ModelSpec& spec, int layer, int64_t k)
    : spec_(spec),
      plan_(plan_of(spec)),
      block_(plan_.layers[layer].attention),
      term_(*block_.data),
      row_(row_of(term_.scores)),
      scale_(row_of(term_.scale)),
      heads_(spec.heads),
      d_(spec.width),
      k_(k),
      total_(term_.query_key.out),
      maps_(map_of_positions(block_), plan_.tensors.all().size()),
      stride_t_(padded(total_)),
      stride_k_(padded(k)),
      stride_d_(padded(d_)) {}
KeyScores::~KeyScores() = default;

KeyScores::Tape KeyScores::tape(int64_t rows) const {
  Tape t{};
  t.kept = rows * total_;
  t.x = t.kept + (row_.changes_keys ? rows * heads_ * 2 : 0);
  t.inverse = t.x + (scaled() ? rows * stride_d_ : 0);
  t.end = t.inverse + (scaled() ? rows : 0);
  return t;
}

KeyScores::Sums KeyScores::sums() const {
  const int64_t nodes = spec_.nodes();
  Sums s{};
  s.table = k_ * stride_t_;
  s.constant = s.table + nodes * total_;
  s.e = s.constant + (scaled() ? total_ : 0);
  s.e_bias = s.e + (scaled() ? k_ * stride_d_ : 0);
  s.offset = s.e_bias + (scaled() ? d_ : 0);
  s.scale = s.offset + (block_.positions ? heads_ * nodes * padded(nodes) : 0);
  s.end = s.scale + heads_;
  return s;
}

int64_t KeyScores::tape_size(int64_t rows) const { return tape(rows).end; }

// dy, and dF's ds and dx of the division.
int64_t KeyScores::scratch_size(int64_t rows) const {
  return rows * (total_ + (scaled() ? stride_k_ + stride_d_ : 0));
}

Headed<const float> KeyScores::queries(const float* tape) const {
  return {tape, total_, 2 * term_.key_size};
}
Headed<const float> KeyScores::keys(const TileState&, const float* tape) const {
  return {tape + term_.key_size, total_, 2 * term_.key_size};
}
Headed<float> KeyScores::dqueries(int64_t, float* scratch) const {
  return {scratch, total_, 2 * term_.key_size};
}
Headed<float> KeyScores::dkeys(int64_t rows, float* scratch, Headed<float>) const {
  std::fill_n(scratch, rows * total_, 0.0f);  // those of keys are added
  return {scratch + term_.key_size, total_, 2 * term_.key_size};
}
ScoreOffset KeyScores::offset(float* sums) const {
  if (!block_.positions) return {};
  return {offset_.data(), sums == nullptr ? nullptr : sums + this->sums().offset};
}

void KeyScores::prepare(const Parameters<float>& parameters, const ActiveNodes& active,
                        const float* e_weight, const float* e_bias) {
  weights_ = parameters.values().data();
  e_weight_ = e_weight;
  e_bias_ = e_bias;
  maps_.prepare(parameters);
  nodes_ = std::make_unique<NodeContext<float>>(spec_, parameters, maps_,
                                                active.count() - spec_.scratch_nodes);
  const auto slice = [&](TensorId id) { return weights_ + plan_.tensors.all()[id].offset; };
  const float* w = slice(term_.query_key.weight);
  const float* b = slice(term_.query_key.bias);
  const int64_t in = term_.query_key.in, n = active.count(), p = spec_.encoding_size;
  f_.resize(total_ * stride_k_);
  f_transposed_.resize(k_ * stride_t_);
  constant_.resize(total_);
  table_.resize(n * total_);
  gemm(false, false, total_, k_, d_, 1, w, in, e_weight, k_, 0, f_.data(), stride_k_);
  tile_kernels().transpose(total_, k_, f_.data(), stride_k_, f_transposed_.data(), stride_t_);
  gemm(false, false, total_, 1, d_, 1, w, in, e_bias, 1, 0, constant_.data(), 1);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < total_; ++c) {
      table_[i * total_ + c] = b[c] + (scaled() ? 0 : constant_[c]);
    }
  }
  if (term_.positions_joined) {
    gemm(false, true, n, total_, p, 1, nodes_->positions.data(), p, w + d_, in, 1, table_.data(),
         total_);
  }
  if (scaled()) {
    e_transposed_.resize(k_ * stride_d_);
    tile_kernels().transpose(d_, k_, e_weight, k_, e_transposed_.data(), stride_d_);
  }
  if (!block_.positions) return;
  std::vector<float> scores(heads_ * n * n);
  row_of(block_.positions->kind)
      .in<float>()
      .scores(*block_.positions, static_cast<int>(heads_), *nodes_, scores.data());
  offset_.assign(heads_ * n * padded(n), 0.0f);
  for (int64_t r = 0; r < heads_ * n; ++r) {
    std::copy_n(&scores[r * n], n, &offset_[r * padded(n)]);
  }
}

void KeyScores::forward(const TileState& s, float* y) const {
  const TileKernels& kernels = tile_kernels();
  const int64_t rows = s.rows();
  const Tape t = tape(rows);
  if (!scaled()) {
    for (int64_t at = 0; at < rows; at += s.nodes) {
      std::copy_n(table_.data(), s.nodes * total_, y + at * total_);
    }
    kernels.product(rows, total_, k_, s.data, s.stride, 1, f_transposed_.data(), stride_t_, y,
                    total_, Store::add, nullptr);
  } else {
    float *x = y + t.x, *inverse = y + t.inverse;
    kernels.product(rows, d_, k_, s.data, s.stride, 1, e_transposed_.data(), stride_d_, x,
                    stride_d_, Store::bias, e_bias_);
    kernels.product(rows, total_, k_, s.data, s.stride, 1, f_transposed_.data(), stride_t_, y,
                    total_, Store::bias, constant_.data());
    const int64_t part = rows_of_part(s.nodes);
    for (int64_t first = 0; first < rows; first += part) {
      float square = 0;
      for (int64_t r = first; r < first + part; ++r) {
        square += dot(d_, x + r * stride_d_, x + r * stride_d_);
      }
      const float inv =
          square > 0 ? std::sqrt(static_cast<float>(part * d_)) / std::sqrt(square) : 0.0f;
      for (int64_t r = first; r < first + part; ++r) {
        inverse[r] = inv;
        const float* fixed = &table_[r % s.nodes * total_];
        for (int64_t c = 0; c < total_; ++c) y[r * total_ + c] = inv * y[r * total_ + c] + fixed[c];
      }
    }
  }
  if (term_.rope) {
    generic::rotate<float>(rows, 2 * heads_, term_.key_size, nodes_->index, 1, y);
  }
  if (row_.changes_keys) {
    const float* scale = term_.head_scale == no_tensor ? nullptr : nodes_->tensor(term_.head_scale);
    row_.in<float>().prepare(rows, static_cast<int>(heads_), term_.key_size, scale, y, y + t.kept);
  }
  if (term_.factor == 1) return;
  const auto factor = static_cast<float>(term_.factor);
  for (int64_t at = 0; at < rows * total_; at += 2 * term_.key_size) {
    for (int64_t c = 0; c < term_.key_size; ++c) y[at + c] *= factor;
  }
}

void KeyScores::backward(const TileState& s, const float* made, float* dy, float* all_sums,
                         float* ds, bool wants_ds) const {
  const TileKernels& kernels = tile_kernels();
  const int64_t rows = s.rows();
  const Tape t = tape(rows);
  const Sums at = sums();
  if (term_.factor != 1) {
    const auto factor = static_cast<float>(term_.factor);
    for (int64_t first = 0; first < rows * total_; first += 2 * term_.key_size) {
      for (int64_t c = 0; c < term_.key_size; ++c) dy[first + c] *= factor;
    }
  }
  if (row_.changes_keys) {
    const float* scale = term_.head_scale == no_tensor ? nullptr : nodes_->tensor(term_.head_scale);
    row_.in<float>().gradient(rows, static_cast<int>(heads_), term_.key_size, scale, made,
                              made + t.kept, dy, all_sums + at.scale);
  }
  if (term_.rope) {
    generic::rotate<float>(rows, 2 * heads_, term_.key_size, nodes_->index, -1, dy);
  }
  for (int64_t r = 0; r < rows; ++r) {
    float* sum = all_sums + at.table + r % s.nodes * total_;
    for (int64_t c = 0; c < total_; ++c) sum[c] += dy[r * total_ + c];
  }
  if (scaled()) {
    scaled_backward(s, made, dy, dy + rows * total_, all_sums, ds, wants_ds);
  } else if (wants_ds) {
    kernels.product(rows, k_, total_, dy, total_, 1, f_.data(), stride_k_, ds, s.stride, Store::add,
                    nullptr);
  }
  kernels.product(k_, total_, rows, s.data, 1, s.stride, dy, total_, all_sums, stride_t_,
                  Store::add, nullptr);
}

// With x' = inv x and along = <dx', x'> = inv sum_r (s_r . (F^T dy)_r + f . dy_r):
//   dx = inv dx' - c x,  c = inv^2 along / part;   ds = inv F^T dy - c E^T x
// dy becomes inv dy.
void KeyScores::scaled_backward(const TileState& s, const float* made, float* dy, float* scratch,
                                float* all_sums, float* ds, bool wants_ds) const {
  const TileKernels& kernels = tile_kernels();
  const int64_t rows = s.rows(), part = rows_of_part(s.nodes);
  const Tape t = tape(rows);
  const Sums at = sums();
  const float *x = made + t.x, *inverse = made + t.inverse;
  float *through = scratch, *dx = scratch + rows * stride_k_;
  kernels.product(rows, k_, total_, dy, total_, 1, f_.data(), stride_k_, through, stride_k_,
                  Store::assign, nullptr);
  for (int64_t first = 0; first < rows; first += part) {
    const float inv = inverse[first];
    float along = 0;
    for (int64_t r = first; r < first + part; ++r) {
      along += dot(k_, s.data + r * s.stride, through + r * stride_k_) +
               dot(total_, constant_.data(), dy + r * total_);
    }
    const float share = inv * inv * inv * along / static_cast<float>(part * d_);
    for (int64_t r = first; r < first + part; ++r) {
      for (int64_t c = 0; c < d_; ++c) dx[r * stride_d_ + c] = -share * x[r * stride_d_ + c];
      for (int64_t c = 0; c < total_; ++c) dy[r * total_ + c] *= inv;
      if (!wants_ds) continue;
      for (int64_t c = 0; c < k_; ++c) ds[r * s.stride + c] += inv * through[r * stride_k_ + c];
    }
  }
  kernels.column_sums(rows, total_, dy, total_, all_sums + at.constant);
  kernels.column_sums(rows, d_, dx, stride_d_, all_sums + at.e_bias);
  kernels.product(k_, d_, rows, s.data, 1, s.stride, dx, stride_d_, all_sums + at.e, stride_d_,
                  Store::add, nullptr);
  if (!wants_ds) return;
  kernels.product(rows, k_, d_, dx, stride_d_, 1, e_weight_, k_, ds, s.stride, Store::add, nullptr);
}

void KeyScores::finish(const float* all_sums, Parameters<float>& out, float* de, float* de_bias,
                       float* dpositions) const {
  const Sums at = sums();
  const int64_t in = term_.query_key.in, n = nodes_->count(), p = spec_.encoding_size;
  const ScoreGradients<float> gradients{out, nullptr};
  const auto slice = [&](TensorId id) { return weights_ + plan_.tensors.all()[id].offset; };
  const float* w = slice(term_.query_key.weight);
  float *dw = gradients.tensor(term_.query_key.weight),
        *db = gradients.tensor(term_.query_key.bias);
  const float *df = all_sums, *dtable = all_sums + at.table;
  std::fill_n(db, total_, 0.0f);
  tile_kernels().column_sums(n, total_, dtable, total_, db);
  // Where nothing is divided, f is part of the table.
  const float* dconstant = scaled() ? all_sums + at.constant : db;
  // F = W_x E, f = W_x e
  gemm(true, true, total_, d_, k_, 1, df, stride_t_, e_weight_, k_, 0, dw, in);
  add_outer(total_, d_, dconstant, e_bias_, dw, in);
  gemm(true, true, d_, k_, total_, 1, w, in, df, stride_t_, 1, de, k_);
  gemm(true, false, d_, 1, total_, 1, w, in, dconstant, 1, 1, de_bias, 1);
  if (scaled()) {
    for (int64_t c = 0; c < d_; ++c) {
      de_bias[c] += all_sums[at.e_bias + c];
      for (int64_t j = 0; j < k_; ++j) de[c * k_ + j] += all_sums[at.e + j * stride_d_ + c];
    }
  }
  std::vector<float> dall(nodes_->positions.size());  // dP of the nodes at hand
  if (term_.positions_joined) {
    gemm(true, false, total_, p, n, 1, dtable, total_, nodes_->positions.data(), p, 0, dw + d_, in);
    gemm(false, false, n, p, total_, 1, dtable, total_, w + d_, in, 0, dall.data(), p);
  }
  if (term_.head_scale != no_tensor) {
    std::copy_n(all_sums + at.scale, heads_, gradients.tensor(term_.head_scale));
  }
  if (block_.positions) {
    const PositionTerm& term = *block_.positions;
    for (const TensorId id : term.tensors) {
      std::fill_n(gradients.tensor(id), plan_.tensors.all()[id].size, 0.0f);
    }
    std::vector<float> dscores(heads_ * n * n);
    for (int64_t r = 0; r < heads_ * n; ++r) {
      std::copy_n(all_sums + at.offset + r * padded(n), n, &dscores[r * n]);
    }
    row_of(term.kind).in<float>().gradient(term, static_cast<int>(heads_), *nodes_, dscores.data(),
                                           {out, dall.data()});
  }
  for (int64_t i = 0; dpositions != nullptr && i < n; ++i) {
    for (int64_t c = 0; c < p && !dall.empty(); ++c) {
      dpositions[nodes_->index[i] * p + c] += dall[i * p + c];
    }
  }
}

double KeyScores::work() const {
  return static_cast<double>(k_ * total_ + (scaled() ? k_ * d_ : 0));
}

}  // namespace posattn::engine
