// Kernels of the fused engine for larger models (up to 65 nodes, widths up to 128): one layer of
// every slot in folded form,
//   u = s M_0^T + sum_h (A_h s) M_h^T + c,
// with A_h from positions (one for all samples) or, per sample, A_h = softmax((s G_h + g_h) s^T).
// What the symbols mean stands in model/engine/folded_stage.h, where they lie in FoldedLayout.
//
// Rows are sample-major: [slots, samples, nodes, columns]. A block takes a *tile* of whole samples
// (at most 144 rows) through a layer in shared memory; a *group* is a fixed number of consecutive
// samples whose gradients one block adds up. Both depend on the model alone, never on the fleet.
//
// Absent samples (from steps[slot].samples on) are neither read nor written, in whatever array.
// Rows of absent nodes are numbers like any other; nothing comes of them but zero gradients.
//
// With tf32, what the kernels write for other layers is rounded to it. Weights and positions are
// rounded on the way in; the errors a caller makes count without the bits that tf32 ignores.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "posattn/kernels/cuda/fleet.h"

namespace posattn::cuda::large {

struct Layer {
  const SlotStep* steps = nullptr;  // [slots]; slots that rest are not touched
  int slots = 1;
  int samples = 0;     // FleetShape::sample_stride()
  int nodes = 0;       // real and scratch; the scratch nodes come last
  int real_nodes = 0;  // of the spec; nodes steps[slot].real_nodes .. real_nodes - 1 are absent:
                       // nobody hears them
  int heads = 0;
  int columns = 0;  // of s; `hidden` except for layer 0
  int hidden = 0;   // of u
  bool from_data = false;
  int multiprocessors = 1;  // of the device; no result depends on it

  // s; null for layer 0, whose rows are [inputs | positions].
  const float* rows = nullptr;
  const float* inputs = nullptr;  // as in StepData, one data column
  // P [nodes, columns - 1] for all slots (positions_slot = 0) or per slot; null: columns == 1
  const float* positions = nullptr;
  int64_t positions_slot = 0;

  const float* folded = nullptr;  // natural folded weights [slots, folded_size]
  int64_t folded_size = 0;
  int64_t maps = 0, constant = 0, scores = 0, score_bias = 0, attention = 0;  // FoldedLayout's

  // Attention from data: forward writes, backward reads [slots, samples, heads, nodes, nodes].
  // (Attention from positions lies among the folded weights.)
  float* kept_attention = nullptr;

  float* output = nullptr;           // forward: relu(u) [slots, samples, nodes, hidden]
  const float* errors = nullptr;     // backward: d loss / d u, same shape; zero for absent nodes
  float* previous_errors = nullptr;  // backward: d loss / d s where s > 0, else zero, in the shape
                                     // of rows; may be where `rows` is; null for layer 0
  // backward: gradients of maps, constant, scores, score_bias, attention at their places, by group;
  // zeros in groups without a present sample. What lies between them is not touched.
  float* partials = nullptr;  // [slots, groups(layer), folded_size]
};

// Sizes the kernels take: up to 65 nodes, hidden up to 128, columns up to 136, up to 4 heads.
bool supports(int nodes, int heads, int columns, int hidden);

// Shared memory that a block takes.
int64_t forward_shared_bytes(const Layer& layer);
int64_t backward_shared_bytes(const Layer& layer);

// Groups of gradients of a slot; the same for all layers of a model (samples and nodes decide).
int groups(const Layer& layer);

void enqueue_forward(const Layer& layer, Precision precision, cudaStream_t stream);
void enqueue_backward(const Layer& layer, Precision precision, cudaStream_t stream);

}  // namespace posattn::cuda::large
