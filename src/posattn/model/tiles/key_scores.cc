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
      d_(spec.width),
      k_(k),
      z_(scaled() ? d_ : k),
      total_(term_.query_key.out),
      maps_(map_of_positions(block_), plan_.tensors.all().size()),
      stride_t_(padded(total_)) {}
KeyScores::~KeyScores() = default;

KeyScores::Tape KeyScores::tape(int64_t rows) const {
  Tape t{};
  t.kept = rows * total_;
  t.z = t.kept + (row_.changes_keys ? rows * spec_.heads * 2 : 0);
  t.inverse = t.z + (scaled() ? rows * d_ : 0);
  t.end = t.inverse + (scaled() ? rows : 0);
  return t;
}

KeyScores::Sums KeyScores::sums() const {
  const int64_t nodes = spec_.nodes(), heads = spec_.heads;
  Sums s{};
  s.table = z_ * stride_t_;
  s.e = s.table + nodes * total_;
  s.e_bias = s.e + (scaled() ? k_ * d_ : 0);
  s.offset = s.e_bias + (scaled() ? d_ : 0);
  s.scale = s.offset + (block_.positions ? heads * nodes * padded(nodes) : 0);
  s.end = s.scale + heads;
  return s;
}

// dy, and dz where x is divided.
int64_t KeyScores::scratch_size(int64_t rows) const {
  return rows * (total_ + (scaled() ? d_ : 0));
}

float KeyScores::norm(int64_t nodes) const { return std::sqrt(static_cast<float>(part(nodes))); }

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
ScoreOffset KeyScores::offset(float* all_sums) const {
  if (!block_.positions) return {};
  return {offset_.data(), all_sums == nullptr ? nullptr : all_sums + sums().offset};
}

void KeyScores::prepare(const Parameters<float>& parameters, const ActiveNodes& active,
                        const float* e_weight, const float* e_bias) {
  weights_ = parameters.values().data();
  e_weight_ = e_weight;
  e_bias_ = e_bias;
  maps_.prepare(parameters);
  nodes_ = std::make_unique<NodeContext<float>>(spec_, parameters, maps_,
                                                active.count() - spec_.scratch_nodes);
  const float *w = nodes_->tensor(term_.query_key.weight),
              *b = nodes_->tensor(term_.query_key.bias);
  const int64_t in = term_.query_key.in, n = active.count(), p = spec_.encoding_size;
  g_.resize(total_ * z_);
  g_transposed_.resize(z_ * stride_t_);
  table_.resize(n * total_);
  for (int64_t i = 0; i < n; ++i) std::copy_n(b, total_, &table_[i * total_]);
  if (scaled()) {
    for (int64_t r = 0; r < total_; ++r) std::copy_n(w + r * in, d_, &g_[r * d_]);
    e_transposed_.resize(k_ * padded(d_));
    tile_kernels().transpose(d_, k_, e_weight, k_, e_transposed_.data(), padded(d_));
  } else {
    gemm(false, false, total_, k_, d_, 1, w, in, e_weight, k_, 0, g_.data(), k_);
    for (int64_t i = 0; i < n; ++i) {
      gemm(false, false, total_, 1, d_, 1, w, in, e_bias, 1, 1, &table_[i * total_], 1);
    }
  }
  tile_kernels().transpose(total_, z_, g_.data(), z_, g_transposed_.data(), stride_t_);
  if (term_.positions_joined) {
    gemm(false, true, n, total_, p, 1, nodes_->positions.data(), p, w + d_, in, 1, table_.data(),
         total_);
  }
  if (!block_.positions) return;
  const int64_t heads = spec_.heads;
  std::vector<float> scores(heads * n * n);
  row_of(block_.positions->kind)
      .in<float>()
      .scores(*block_.positions, spec_.heads, *nodes_, scores.data());
  offset_.assign(heads * n * padded(n), 0.0f);
  for (int64_t r = 0; r < heads * n; ++r) {
    std::copy_n(&scores[r * n], n, &offset_[r * padded(n)]);
  }
}

void KeyScores::forward(const TileState& s, float* y) const {
  const TileKernels& kernels = tile_kernels();
  const int64_t rows = s.rows();
  const Tape t = tape(rows);
  const float* z = s.data;
  int64_t stride = s.stride;
  if (scaled()) {
    float* x = y + t.z;
    kernels.product(rows, d_, k_, s.data, s.stride, 1, e_transposed_.data(), padded(d_), x, d_,
                    Store::bias, e_bias_);
    const int64_t size = part(s.nodes);
    kernels.to_norm(rows * d_ / size, size, size, norm(s.nodes), x, y + t.inverse, 1);
    z = x;
    stride = d_;
  }
  // t is the same for all nodes where P has no part in it.
  for (int64_t at = 0; term_.positions_joined && at < rows; at += s.nodes) {
    std::copy_n(table_.data(), s.nodes * total_, y + at * total_);
  }
  kernels.product(rows, total_, z_, z, stride, 1, g_transposed_.data(), stride_t_, y, total_,
                  term_.positions_joined ? Store::add : Store::bias, table_.data());
  if (term_.rope) {
    generic::rotate<float>(rows, 2 * spec_.heads, term_.key_size, nodes_->index, 1, y);
  }
  if (row_.changes_keys) {
    row_.in<float>().prepare(rows, spec_.heads, term_.key_size, head_scale(), y, y + t.kept);
  }
  times_factor(rows, y);
}

// Of queries alone.
void KeyScores::times_factor(int64_t rows, float* y) const {
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
  times_factor(rows, dy);
  if (row_.changes_keys) {
    row_.in<float>().gradient(rows, spec_.heads, term_.key_size, head_scale(), made, made + t.kept,
                              dy, all_sums + at.scale);
  }
  if (term_.rope) {
    generic::rotate<float>(rows, 2 * spec_.heads, term_.key_size, nodes_->index, -1, dy);
  }
  kernels.column_sums(s.samples, s.nodes * total_, dy, s.nodes * total_, all_sums + at.table);
  if (!scaled()) {
    kernels.product(k_, total_, rows, s.data, 1, s.stride, dy, total_, all_sums, stride_t_,
                    Store::add, nullptr);
    if (!wants_ds) return;
    return kernels.product(rows, k_, total_, dy, total_, 1, g_.data(), k_, ds, s.stride, Store::add,
                           nullptr);
  }
  const float* z = made + t.z;
  float* dx = dy + rows * total_;
  const int64_t size = part(s.nodes);
  kernels.product(d_, total_, rows, z, 1, d_, dy, total_, all_sums, stride_t_, Store::add, nullptr);
  kernels.product(rows, d_, total_, dy, total_, 1, g_.data(), d_, dx, d_, Store::assign, nullptr);
  kernels.to_norm_gradient(rows * d_ / size, size, size, norm(s.nodes), made + t.inverse, 1, z, dx);
  kernels.column_sums(rows, d_, dx, d_, all_sums + at.e_bias);
  kernels.product(k_, d_, rows, s.data, 1, s.stride, dx, d_, all_sums + at.e, d_, Store::add,
                  nullptr);
  if (!wants_ds) return;
  kernels.product(rows, k_, d_, dx, d_, 1, e_weight_, k_, ds, s.stride, Store::add, nullptr);
}

void KeyScores::finish(const float* all_sums, Parameters<float>& out, float* de, float* de_bias,
                       float* dpositions) const {
  const Sums at = sums();
  const int64_t in = term_.query_key.in, n = nodes_->count(), p = spec_.encoding_size;
  const ScoreGradients<float> gradients{out, nullptr};
  const float* w = nodes_->tensor(term_.query_key.weight);
  float *dw = gradients.tensor(term_.query_key.weight),
        *db = gradients.tensor(term_.query_key.bias);
  const float *dg = all_sums, *dtable = all_sums + at.table;
  std::fill_n(db, total_, 0.0f);
  tile_kernels().column_sums(n, total_, dtable, total_, db);
  if (scaled()) {
    tile_kernels().transpose(d_, total_, dg, stride_t_, dw, in);
    for (int64_t c = 0; c < d_; ++c) {
      de_bias[c] += all_sums[at.e_bias + c];
      for (int64_t j = 0; j < k_; ++j) de[c * k_ + j] += all_sums[at.e + j * d_ + c];
    }
  } else {  // G = W_x E, and t's W_x e
    gemm(true, true, total_, d_, k_, 1, dg, stride_t_, e_weight_, k_, 0, dw, in);
    add_outer(total_, d_, db, e_bias_, dw, in);
    gemm(true, true, d_, k_, total_, 1, w, in, dg, stride_t_, 1, de, k_);
    gemm(true, false, d_, 1, total_, 1, w, in, db, 1, 1, de_bias, 1);
  }
  std::vector<float> dall(nodes_->positions.size());  // dP of the nodes at hand
  if (term_.positions_joined) {
    gemm(true, false, total_, p, n, 1, dtable, total_, nodes_->positions.data(), p, 0, dw + d_, in);
    gemm(false, false, n, p, total_, 1, dtable, total_, w + d_, in, 0, dall.data(), p);
  }
  if (term_.head_scale != no_tensor) {
    std::copy_n(all_sums + at.scale, spec_.heads, gradients.tensor(term_.head_scale));
  }
  if (block_.positions) {
    const PositionTerm& term = *block_.positions;
    for (const TensorId id : term.tensors) {
      std::fill_n(gradients.tensor(id), plan_.tensors.all()[id].size, 0.0f);
    }
    const int64_t score_rows = spec_.heads * n;
    std::vector<float> dscores(score_rows * n);
    for (int64_t r = 0; r < score_rows; ++r) {
      std::copy_n(all_sums + at.offset + r * padded(n), n, &dscores[r * n]);
    }
    row_of(term.kind).in<float>().gradient(term, spec_.heads, *nodes_, dscores.data(),
                                           {out, dall.data()});
  }
  if (dpositions == nullptr || dall.empty()) return;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < p; ++c) dpositions[nodes_->index[i] * p + c] += dall[i * p + c];
  }
}

double KeyScores::work() const {
  return static_cast<double>(z_ * total_ + (scaled() ? k_ * d_ : 0));
}

}  // namespace posattn::engine
