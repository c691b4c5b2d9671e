// Kernels of the engine for 9 to 80 nodes, two heads, width and hidden width 64. One layer of
// every slot, everything linear but the values folded:
//   v = s V^T,   z_h = A_h v_h,   u = s M^T + [z_1 | z_2] P^T + c,
// so that mixing works on 32 columns of a head instead of 64. With E, e the map into the layer,
//   M = W1x E,   V = Wv E,   P = W1o Wo,   c = b1 + W1x e + P (Wv e + bv) + W1o bo.
// Layer 0 has one column, and with m_h = P_h V_h it is u = x m_0 + sum_h (A_h x) m_h + c. Where
// nodes differ in more than that (positions in the input) or attention comes from the data, x is
// formed instead (entry.cu), and layer 0 is like the others with E = I and e = 0. A_h comes from
// positions and is the same for all samples, or from the data:
//   A_h = softmax(t_h s^T),   t_h = s G_h + g_h   (G, g: model/engine/folded_stage.h).
//
// Rows are sample-major: [slots, samples, nodes, 64]. A block takes a *tile* of whole samples
// through a layer in shared memory; a *group* is a fixed number of consecutive samples whose
// gradients one block adds up. Both depend on the nodes and the precision alone, never on the
// fleet. Absent samples (from steps[slot].samples on) are neither read nor written.
//
// Products are those of fp16 (tile.cuh): once for tf32, whose ten bits it has, three times with
// split operands for fp32. Rows of A must not add up to more than one.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "posattn/model/cuda/folding/layout.h"
#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda::medium {

constexpr int columns = 64, heads = 2;
constexpr int fewest_nodes = 9, most_nodes = 80;

// The places in a slot's folded weights are: maps: M, V, P, 64 x 64 one after the other (layer 0:
// m_0, m_1, m_2); constant: c [64]; attention, from positions: A [heads, nodes, nodes]; scores and
// score_bias, from data: G [heads, 64, 64] and g [heads, 64]; entry: a and b of x where that is
// formed (entry.cu). Gradients have the same places.
struct Layer : LayerPlaces {
  const SlotStep* steps = nullptr;  // [slots]; slots that rest are not touched
  int slots = 1;
  int samples = 0;  // FleetShape::sample_stride()
  int nodes = 0;
  bool from_data = false;
  int real_nodes =
      0;  // from data: of the spec; those from steps[slot].real_nodes on are not attended

  const float* rows = nullptr;    // s; null for a layer 0 of one column
  const float* inputs = nullptr;  // of layer 0: as in StepData, one data column

  const float* folded = nullptr;  // [slots, folded_size]
  int64_t folded_size = 0;
  int64_t entry = 0;
  // From data: forward writes A for backward, as operands (data_tile.cuh).
  uint4* kept_attention = nullptr;  // [slots, samples, kept_operands(nodes)]

  float* output = nullptr;        // forward: relu(u)
  const float* errors = nullptr;  // backward: d loss / d u
  // Backward: d loss / d s, where s came out of a ReLU zero unless s > 0; may be where `rows` is.
  float* previous_errors = nullptr;
  bool rectified = true;  // s came out of a ReLU
  // Backward writes gradients by group, zeros in groups without a present sample.
  float* partials = nullptr;  // [slots, groups, folded_size]
};

// How many samples a group has, and how many groups a slot; the same for all layers of a model.
int group_samples(const Layer& layer, Precision precision);
int groups(const Layer& layer, Precision precision);

// Attention from positions. Shared memory that a block takes at most, of either precision.
int64_t shared_bytes(int nodes);
int64_t forward_shared_bytes(int nodes);
void enqueue_forward(const Layer& layer, Precision precision, cudaStream_t stream);
void enqueue_backward(const Layer& layer, Precision precision, cudaStream_t stream);

// Layers with attention from data; tf32 alone.
int data_group_samples(int nodes);
int64_t kept_operands(int nodes);
int64_t data_shared_bytes(int nodes);
void enqueue_data_forward(const Layer& layer, cudaStream_t stream);
void enqueue_data_backward(const Layer& layer, cudaStream_t stream);

// x and the gradients of its a and b.
void enqueue_entry_forward(const Layer& layer, float* rows, cudaStream_t stream);
void enqueue_entry_backward(const Layer& layer, const float* errors, Precision precision,
                            cudaStream_t stream);

// The loss, and its gradient in place of the last layer's output relu(u): d loss / d u, zero for
// outputs that do not count. A block adds up the gradient of the decoder and the squared errors
// (losses [slots, groups], before loss_scale) of consecutive samples.
void enqueue_decoder(const Layer& last, const StepData& data, const FoldedLayout& layout,
                     double* losses, Precision precision, cudaStream_t stream);

// Layer 0 of one column.
void enqueue_first_forward(const Layer& layer, cudaStream_t stream);
void enqueue_first_backward(const Layer& layer, Precision precision, cudaStream_t stream);

}  // namespace posattn::cuda::medium
