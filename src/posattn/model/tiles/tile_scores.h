// Queries and keys of attention from data in a folded stage, made of its state s. They are of one
// of two kinds: with all maps folded into the queries, so that s itself is the keys
// (folded_scores.h), or both as they are written, for kinds of attention that change them
// (key_scores.h).
#pragma once

#include "posattn/model/tiles/data_attention.h"
#include "posattn/model/tiles/stage.h"

namespace posattn::engine {

// A stage's state [samples, nodes, k], rows `stride` apart.
struct TileState {
  int samples = 0;
  int64_t nodes = 0, stride = 0;
  const float* data = nullptr;
  int64_t rows() const { return samples * nodes; }
};

class TileScores {
 public:
  virtual ~TileScores() = default;

  // With x = s E^T + e.
  virtual void prepare(const Parameters<float>& parameters, const ActiveNodes& active,
                       const float* e_weight, const float* e_bias) = 0;
  virtual int64_t key_size() const = 0;
  virtual int64_t tape_size(int64_t rows) const = 0;
  virtual int64_t scratch_size(int64_t rows) const = 0;
  virtual int64_t gradient_size() const = 0;

  virtual void forward(const TileState& s, float* tape) const = 0;
  virtual Headed<const float> queries(const float* tape) const = 0;
  virtual Headed<const float> keys(const TileState& s, const float* tape) const = 0;
  // Scores that are added for all samples, with the place of their gradient.
  virtual ScoreOffset offset(float* /*sums*/) const { return {}; }

  // Where the gradients of queries (=) and keys (+=) go; then what follows from them: sums +=, and
  // ds += where it is wanted.
  virtual Headed<float> dqueries(int64_t rows, float* scratch) const = 0;
  virtual Headed<float> dkeys(int64_t rows, float* scratch, Headed<float> ds) const = 0;
  virtual void backward(const TileState& s, const float* tape, float* scratch, float* sums,
                        float* ds, bool wants_ds) const = 0;
  // Into the parameters' gradients: tensors of the scores are written, E and e added to.
  virtual void finish(const float* sums, Parameters<float>& out, float* de, float* de_bias,
                      float* dpositions) const = 0;

  virtual double work() const = 0;  // of queries and keys, per node
};

}  // namespace posattn::engine
