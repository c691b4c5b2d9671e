// Computes a plan block by block as it is written, forward and backward. In double it is the
// reference, the oracle of every engine. In float it is the block executor on the CPU, for what the
// tile engine does not know: slower than that engine, but right for every spec.
//
//   BlockNetwork<T> network(spec);
//   network.prepare(parameters, real_nodes);          once a step
//   network.forward(batch, first, samples, tape);     some samples of the batch
//   loss += network.backward(batch, ..., tape, sums); adds to sums
//   network.finish(sums, gradient);                   once a step
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "posattn/kernels/generic/neurons.h"
#include "posattn/model/attention/rows.h"
#include "posattn/model/attention/score_convolution.h"
#include "posattn/model/blocks/hook.h"
#include "posattn/model/spec/batch.h"

namespace posattn {

// 1 / what the sum over a batch is divided by: all outputs (squared error), or the rows whose label
// counts (cross-entropy).
template <class T>
double loss_scale(const ModelSpec& spec, const BatchOf<T>& batch, std::span<const uint8_t> mask);

// The numbers of one tile that forward leaves for backward; reused from tile to tile.
template <class T>
struct BlockTape {
  struct Layer {
    std::vector<T> x;                  // [rows, width], the layer's input
    std::vector<T> attended;           // what nodes attend to, where it is not x itself
    std::vector<T> scaled;             // [rows, width], divided by its size
    std::vector<T> scaled_inverse;     // 1 / size of each part
    std::vector<T> source;             // [rows, source], of queries and keys, where it differs
    std::vector<T> query_key;          // [rows, heads, 2 d_k], as their products make scores
    std::vector<T> keys_kept;          // [rows, heads, 2 or 2 d_k], see KeyFunctions
    std::vector<T> features;           // [rows, heads, 2 features], in place of query_key
    std::vector<T> convolution_kept;   // [samples], see ScoreConvolution
    std::vector<T> attention;          // [samples, heads, nodes, nodes], where samples differ
    std::vector<T> weights_kept;       // [samples, heads, nodes, nodes], see WeightingFunctions
    std::vector<T> value, mixed;       // [rows, width]
    std::vector<T> sum, joined;        // x + o before and after its norm; or [x | o]
    std::vector<T> mlp_input;          // where it is not joined itself
    std::vector<std::vector<T>> maps;  // of the MLP, before the activation
    std::vector<T> output;             // before the norm behind the layer
    // What charges the neurons of a spiking network, where spikes are named as above.
    struct Currents {
      std::vector<T> query_key, value, mixed, output, mlp;
    };
    Currents currents;

    // Of the stream of values (value_stream.h), [rows, value_width] where nothing else is said.
    std::vector<T> v;                             // the layer's input
    std::vector<T> unit, unit_inverse;            // v divided by its size, 1 / size by sample
    std::vector<T> next_unit, next_unit_inverse;  // the same of the layer's output
    std::vector<T> joined_source;                 // [rows, width + value_width]
    std::vector<T> stream_value, stream_mixed, stream_output;
    std::vector<T> mix_gates, hidden_gates;  // [rows, 2 value_width], [rows, value_mlp_width]
    std::vector<T> u, stream_hidden;         // before the activation
    std::vector<T> joined_input;             // of the symbols' MLP
  };
  std::vector<Layer> layers;
  std::vector<T> input;                        // [rows, input_size]
  std::vector<T> stream_input, stream_output;  // [rows, data_columns], [rows, value_width]
  std::vector<T> input_currents;
  std::vector<T> decoder_input, head_input;  // of spikes the second is their mean over time steps
  std::vector<T> output;                     // [rows, output_columns]
  std::vector<int32_t> tokens, labels;       // of all rows; negative where there is none

  // Memory that is reused from layer to layer.
  struct Scratch {
    std::vector<T> o, transposed, hidden;  // attention's output; of one head; after an activation
    std::vector<T> dx, dy, dmlp, djoined, dattended, dnorm;
    std::vector<T> dmixed, dvalue, dquery_key, dfeatures, dsource, dscaled, da;
    std::vector<T> dcurrents, spikes;
    typename ScoreConvolution<T>::Memory convolution;
    std::vector<std::vector<T>> dhidden;
    std::vector<T> dv, dunit, du, dgates, dstream_mixed, dstream_value,
        dstream_hidden;  // of values
    StepContext context;
    int64_t first = 0;         // sample of the batch
    std::span<const T> pairs;  // of the batch
    std::span<const int32_t> pair_classes;
    std::vector<T> fixed;                // scores of a sample that do not read its data
    const BlockHook<T>* hook = nullptr;  // of a forward pass that somebody looks into
  };
  Scratch scratch;
};

template <class T>
class BlockNetwork {
 public:
  // `spec` resolved; soft_spikes: see NeuronShape.
  explicit BlockNetwork(const ModelSpec& spec, bool soft_spikes = false);
  ~BlockNetwork();

  const ModelSpec& spec() const { return spec_; }
  const Plan& plan() const { return plan_; }
  bool shares_symbols() const { return shares_symbols_; }

  // Keeps a reference to the parameters until the next call. `forward_only`: attention over long
  // inputs need not be made as matrices, which backward, attention() and hooks want. `context`: of
  // the step, where positions are drawn.
  void prepare(const Parameters<T>& parameters, int real_nodes, bool forward_only = false,
               const StepContext& context = {});

  // Samples first .. first + samples - 1; the output lies in the tape, [samples, nodes, columns].
  void forward(const BatchOf<T>& batch, int64_t first, int samples, BlockTape<T>& tape) const;

  // Right after forward of the same samples. Returns their share of the loss, without that of
  // hints, and adds to sums. mask [real_nodes, output_columns], empty: all outputs count; `scale`
  // is the batch's loss_scale.
  double backward(const BatchOf<T>& batch, int64_t first, int samples,
                  std::span<const uint8_t> mask, double scale, BlockTape<T>& tape,
                  std::span<T> sums) const;

  // Gradients as the parameters lie, then of each layer d attention that is the same for all
  // samples, or d scores of its term of positions, then dP.
  int64_t sums_size() const;
  void finish(std::span<const T> sums, Parameters<T>& gradient) const;

  int nodes() const { return nodes_->count(); }
  // Attention of the tape's first sample, [applied layers, heads, nodes, nodes]; the mean over time
  // steps.
  std::vector<T> attention(const BlockTape<T>& tape) const;

 private:
  using Layer = typename BlockTape<T>::Layer;
  using Scratch = typename BlockTape<T>::Scratch;

  const T* head_input(const BlockTape<T>& tape) const {
    if (plan_.head.reads_values) return tape.stream_output.data();
    return (plan_.head.norm || spec_.spikes() ? tape.head_input : tape.decoder_input).data();
  }
  void forward_input(const BatchOf<T>& batch, int64_t first, int samples, BlockTape<T>& tape) const;
  void backward_input(BlockTape<T>& tape, int64_t rows, std::vector<T>& dx,
                      std::span<T> sums) const;
  // Of a spiking network; and back.
  void repeat_input(int64_t samples, std::vector<T>& x) const;
  void sum_steps(int64_t samples, const std::vector<T>& x, T factor, std::vector<T>& sum) const;
  void forward_layer(int layer, int samples, BlockTape<T>& tape) const;
  // dx of the layer's output becomes that of its input.
  void backward_layer(int layer, int samples, BlockTape<T>& tape, std::vector<T>& dx,
                      std::span<T> sums) const;
  // Adds the gradient of the loss of the hints behind a layer to that of its output, dx.
  void hint_backward(int layer, const BatchOf<T>& batch, int64_t first, int samples,
                     BlockTape<T>& tape, std::vector<T>& dx, std::span<T> sums) const;
  void attend(int layer, int samples, const T* attended, Layer& t, Scratch& scratch) const;
  // From scratch.dmixed: dattended = or +=.
  void attend_backward(int layer, int samples, const T* attended, Layer& t, Scratch& scratch,
                       bool accumulate, T* dattended, std::span<T> sums) const;
  static bool scores_pairs(const AttentionBlock& block) {
    return block.positions && row_of(block.positions->kind).of_pairs;
  }
  // Whether samples may differ in their attention.
  static bool per_sample(const AttentionBlock& block) {
    return block.data || row_of(block.weighting).random || scores_pairs(block) ||
           block.pair_mask != PairMask::none;
  }
  // Of an applied layer: the list is applied several times in looped models.
  const LayerBlock& block_of(int layer) const { return plan_.layers[layer % spec_.depth]; }
  const std::vector<T>& shared(int layer) const { return shared_[layer % spec_.depth]; }
  const ScoreConvolution<T>* convolution(int layer) const {
    return convolutions_[layer % spec_.depth].get();
  }
  const LongMixing<T>* long_mixing(int layer) const { return long_[layer % spec_.depth].get(); }
  // Whose products are scores: queries and keys, or features of them; numbers of a row.
  static bool has_features(const AttentionBlock& block) {
    return row_of(block.weighting).template in<T>().features != nullptr;
  }
  static int64_t key_row(const AttentionBlock& block) {
    if (!block.data) return 0;
    return has_features(block) ? int64_t{2} * block.heads * block.features
                               : block.data->query_key.out;
  }
  // A sample of a spiking network has one after another a frame for each time step. All but neurons
  // treats frames as samples.
  int64_t steps() const { return std::max(1, spec_.time_steps); }
  generic::NeuronShape neuron_shape(const NeuronBlock& neurons, int64_t rows,
                                    int64_t columns) const;
  // y becomes spikes, and `currents` what it was; nothing happens where there are no neurons.
  void fire(const NeuronBlock& neurons, int64_t rows, std::vector<T>& y,
            std::vector<T>& currents) const;
  // d of the spikes becomes that of the currents; scratch.spikes: the spikes.
  void fire_backward(const NeuronBlock& neurons, int64_t rows, const std::vector<T>& currents, T* d,
                     Scratch& scratch, std::span<T> sums) const;
  // The same for a gradient that somebody still wants: returns where the other one is.
  const T* fire_backward_of(const NeuronBlock& neurons, int64_t rows,
                            const std::vector<T>& currents, const T* d, Scratch& scratch,
                            std::span<T> sums) const;
  // Symbols of two streams that are positions alone are the same in all samples of a tile, so they
  // are made for one. A hook still sees those of each sample.
  int symbol_samples(int samples, const Scratch& scratch) const {
    return shares_symbols_ && scratch.hook == nullptr ? 1 : samples;
  }
  AttentionDraws draws(int layer, int64_t sample, const Scratch& scratch) const;
  ScoreParts<T> score_parts(int layer, const T* query_key, const T* positions) const;
  SamplePairs<T> pairs_of(int64_t sample, const Scratch& scratch) const;
  // The scores of a sample that do not read its data, [heads, nodes, nodes], or null.
  const T* fixed_scores(int layer, int64_t sample, Scratch& scratch) const;
  // What one attention mixes: values of x, or the stream of values, of so many samples.
  struct MixedPart {
    generic::HeadShape shape;
    int samples;
    const T* value;
    T *mixed, *dmixed, *dvalue;
  };
  std::vector<MixedPart> mixed_parts(int layer, int samples, Layer& t, Scratch& scratch) const;
  // What queries and keys are made of; and from scratch.dsource, adds to dattended.
  const T* make_source(const DataTerm& term, int64_t rows, const T* attended, Layer& t) const;
  void source_backward(const DataTerm& term, int64_t rows, const Layer& t, Scratch& scratch,
                       T* dattended, std::span<T> sums) const;
  void make_query_key(int layer, int64_t rows, const T* attended, Layer& t) const;
  // From scratch.dquery_key, or from that of features: adds to dattended.
  void query_key_backward(int layer, int64_t rows, const T* attended, const Layer& t,
                          Scratch& scratch, T* dattended, std::span<T> sums) const;
  // The gradient of a sample's scores that do not read its data.
  void fixed_scores_backward(int layer, int64_t sample, const Scratch& scratch, T* dscores,
                             std::span<T> sums) const;
  const T* head_scale(const DataTerm& term) const {
    return term.head_scale == no_tensor ? nullptr : tensor(term.head_scale);
  }
  // Layers of two streams. backward: also scratch.dv of the layer's output becomes that of its
  // input.
  void forward_streams(int layer, int samples, BlockTape<T>& tape) const;
  void backward_streams(int layer, int samples, BlockTape<T>& tape, std::vector<T>& dx,
                        std::span<T> sums) const;
  void read_symbols(const std::optional<NormalisationBlock>& norm, int64_t rows,
                    const std::vector<T>& s, std::vector<T>& z) const;
  void forward_values(const ValueStreamBlock& block, int64_t rows, int64_t symbol_rows, Layer& t,
                      Scratch& scratch, std::vector<T>& next) const;
  // dz += of the symbols that gates read.
  void backward_values(const ValueStreamBlock& block, int64_t rows, int64_t symbol_rows,
                       const Layer& t, Scratch& scratch, std::vector<T>& dz,
                       std::span<T> sums) const;
  void forward_mlp(int layer, int64_t rows, const T* x, Layer& t, Scratch& scratch,
                   std::vector<T>& out) const;
  // dx [rows, in of the first map] = (overwritten).
  void backward_mlp(const MlpBlock& block, int64_t rows, const T* x, const Layer& t, const T* dout,
                    Scratch& scratch, std::vector<T>& dx, std::span<T> sums) const;
  void normalise(const NormalisationBlock& block, int64_t rows, const std::vector<T>& x,
                 std::vector<T>& y) const;
  // d becomes the gradient of what was normalised.
  void normalise_backward(const NormalisationBlock& block, int64_t rows, const std::vector<T>& x,
                          std::vector<T>& d, Scratch& scratch, std::span<T> sums) const;

  static void show(const Scratch& scratch, Activated what, int layer, std::vector<T>& numbers,
                   int map = 0) {
    if (scratch.hook != nullptr) (*scratch.hook)(what, layer, map, numbers);
  }

  const T* tensor(TensorId id) const { return nodes_->tensor(id); }
  T* gradient(std::span<T> sums, TensorId id) const {
    return sums.data() + plan_.tensors.all()[id].offset;
  }
  // [data | P] of every row, whichever of the two is wanted; and back.
  void join(int64_t rows, const T* data, int data_size, bool with_positions,
            std::vector<T>& out) const;
  void split(int64_t rows, const std::vector<T>& d, int data_size, bool with_positions, T* ddata,
             std::span<T> sums) const;
  int64_t attention_offset(int layer) const;  // in sums
  int64_t positions_offset() const { return attention_offset(spec_.depth); }

  const ModelSpec spec_;
  const Plan plan_;
  const bool soft_spikes_, shares_symbols_;
  int layers_ = 0;  // that a sample goes through
  LinearMaps<T> maps_;
  std::unique_ptr<NodeContext<T>> nodes_;
  // Of each layer, [heads, nodes, nodes]: attention that is the same for all samples, or the term
  // of positions beside one of the data.
  std::vector<std::vector<T>> shared_;
  // Of a weighting that keeps something, where attention is the same for all samples.
  std::vector<std::vector<T>> shared_kept_, shared_scores_;
  // Of each layer; null where there is none.
  std::vector<std::unique_ptr<ScoreConvolution<T>>> convolutions_;
  std::vector<std::unique_ptr<LongMixing<T>>> long_;
};

}  // namespace posattn
