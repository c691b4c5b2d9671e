// A stage maps the activations of a tile to the next stage's input: the network is
//   attention stage, [middle MLP maps], attention stage, ..., decoder
// where an attention stage starts from s, the previous MLP's last hidden activations (after ReLU)
// or the network's input, and ends with the next hidden activations. The linear map before it (x =
// s E^T + e: the encoder, or the previous MLP's last map) belongs to it, so that it can fold.
//
// A tile is [samples, nodes, features], sample after sample; its rows are samples x nodes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "posattn/model/spec/parameters.h"
#include "posattn/model/spec/spec.h"

namespace posattn::engine {

// Rows start at multiples of 16 floats (a cache line), an odd number of lines apart: with an even
// one the same columns of successive rows would fall into few sets of the first-level cache.
inline int64_t padded(int64_t size) { return ((size + 15) / 16 | 1) * 16; }

// The nodes of this batch by their index in P: the first real ones and the scratch nodes.
struct ActiveNodes {
  std::vector<int> index;
  int count() const { return static_cast<int>(index.size()); }
};

// Multiply-adds of a forward pass: for one sample, and once a step.
struct StageWork {
  double per_sample = 0, per_step = 0;
};

// The form in which attention is prepared: its matrix, which gradients and pictures need, or
// whatever applies it with the least arithmetic (mixing.h) and memory.
enum class AttentionForm { matrix, cheapest };

class Stage {
 public:
  virtual ~Stage() = default;

  // Once a step, before any tile: folds or transposes weights, computes attention from positions.
  virtual void prepare(const Parameters<float>& parameters, const ActiveNodes& active,
                       AttentionForm form) = 0;

  // Sizes in floats for a tile of `samples` with all nodes active, in the form last prepared.
  virtual int64_t tape_size(int samples) const = 0;     // what forward leaves for backward
  virtual int64_t scratch_size(int samples) const = 0;  // for forward or backward, then free
  virtual int64_t gradient_size() const = 0;            // this stage's accumulators

  // The tape begins with the stage's input, rows this far apart.
  virtual int64_t input_stride() const = 0;

  // output [rows, .] = stage(tape's input).
  virtual void forward(int samples, float* tape, float* scratch, float* output,
                       int64_t output_stride) const = 0;

  // Before the first tile of a gradient over so many samples; may change gradient_size().
  virtual void begin_gradient(int64_t /*samples*/) {}
  // `first`: the tile's first sample in its batch. doutput is overwritten. Adds to `gradient`.
  // Returns the gradient of the input, rows input_stride() apart, somewhere in `scratch`; null
  // unless `wants_dinput`.
  virtual float* backward(int64_t first, int samples, const float* tape, const float* output,
                          int64_t output_stride, float* doutput, int64_t doutput_stride,
                          bool wants_dinput, float* scratch, float* gradient) const = 0;

  // Turns the summed accumulators, which it may overwrite, into gradients of the parameters;
  // tensors no other stage writes. dpositions [nodes, encoding_size] (+=) may be null.
  virtual void finish(float* gradient, Parameters<float>& out, float* dpositions) = 0;

  // Attention of the tape's first sample, [heads, nodes, nodes]; false when the stage has none.
  virtual bool attention(const float* /*tape*/, float* /*scratch*/, float* /*out*/) const {
    return false;
  }

  virtual StageWork nominal_work() const = 0;
  virtual StageWork actual_work() const = 0;
};

// Whether stages know all that the spec says. Biases that are absent are zeros here. Some kinds of
// attention exist as folded stages alone.
bool known_to_stages(const ModelSpec& spec);
bool always_folded(const ModelSpec& spec);

// A linear map's place in the parameter buffer, weight [out, in].
struct LinearMap {
  int64_t weight = 0, bias = 0, out = 0, in = 0;
  static LinearMap find(const ParameterLayout& layout, std::string_view name);
};

}  // namespace posattn::engine
