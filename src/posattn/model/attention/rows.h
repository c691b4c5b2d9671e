// Attention as tables of rows. A layer's scores are a sum of at most two terms: one made of the
// data, sample by sample, and one that is the same for all samples or made of a sample's pairs of
// nodes. A weighting makes attention of them.
//
//   S = scores of the data(scaled source of queries and keys) + scores of positions or of pairs
//   A = weighting(S),  o = A V
//
// Each choice of AttentionChoices (spec/spec.h) is a row here, for float (the block executor) and
// double (the reference). The executors walk the rows and know none by name. Places of nodes: n
// nodes at hand, d_k numbers of a query or key. Matrices are row-major.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "posattn/kernels/generic/attention.h"
#include "posattn/model/attention/linear_maps.h"
#include "posattn/model/plan.h"
#include "posattn/model/spec/batch.h"
#include "posattn/model/spec/parameters.h"

namespace posattn {

// The nodes that take part, and what the model knows of them whatever the data.
template <class T>
struct NodeContext {
  NodeContext(const ModelSpec& spec, const Parameters<T>& parameters, const LinearMaps<T>& maps,
              int real_nodes, const StepContext& context = {});

  int count() const { return static_cast<int>(index.size()); }
  const T* tensor(TensorId id) const {
    return parameters.slice(parameters.layout().tensors()[id]).data();
  }

  const ModelSpec& spec;
  const Parameters<T>& parameters;
  const LinearMaps<T>& maps;
  int real_nodes;
  std::vector<int> index;    // by row of P: the first real ones, then the scratch nodes
  std::vector<int> place;    // their positions: the same, or drawn (node_positions.h)
  std::vector<T> positions;  // [count, encoding_size]; empty without positions
};

// Gradients that do not depend on single samples.
template <class T>
struct ScoreGradients {
  T* tensor(TensorId id) const {
    return parameters.slice(parameters.layout().tensors()[id]).data();
  }
  Parameters<T>& parameters;
  T* positions;  // [count, encoding_size]
};

// A function written once for both precisions.
template <template <class> class Function>
struct InBoth {
  Function<float> in_float;
  Function<double> in_double;
  template <class T>
  const Function<T>& in() const {
    if constexpr (std::is_same_v<T, float>) {
      return in_float;
    } else {
      return in_double;
    }
  }
};

// The pairs of one sample's real nodes; what the model does not read is empty.
template <class T>
struct SamplePairs {
  std::span<const T> numbers = {};        // [real, real, pair_columns]
  std::span<const int32_t> classes = {};  // [real, real]
};

// Scores that do not read the data, [heads, n, n].
template <class T>
struct PositionFunctions {
  void (*scores)(const PositionTerm&, int heads, const NodeContext<T>&, T* scores);
  // Adds to the gradients of the term's tensors, and to that of P where it reads P.
  void (*gradient)(const PositionTerm&, int heads, const NodeContext<T>&, const T* dscores,
                   const ScoreGradients<T>&);
  // Where scores of real nodes depend on i - j alone: t [heads, 2 real - 1] and u of scratch nodes
  // [heads, scratch, scratch + 2], as kernels/generic/relative.h has them.
  void (*by_distance)(const PositionTerm&, int heads, const NodeContext<T>&, T* t, T* u) = nullptr;
  // In the place of both, of scores that are made of a sample's pairs. Gradients are added to
  // `sums`, where tensors lie as in the parameters.
  void (*scores_of_pairs)(const PositionTerm&, int heads, const NodeContext<T>&,
                          const SamplePairs<T>&, T* scores) = nullptr;
  void (*gradient_of_pairs)(const PositionTerm&, int heads, const NodeContext<T>&,
                            const SamplePairs<T>&, const T* dscores, T* sums) = nullptr;
};
struct PositionRow : InBoth<PositionFunctions> {
  // Of a layer, in the order of files; names are within the layer. `beside_data`: there is a data
  // term.
  std::vector<TensorInfo> (*tensors)(const ModelSpec& layer, bool beside_data);
  bool maps_positions = false;  // the first two tensors are the queries' and keys' linear map
  bool of_pairs = false;        // so samples differ
  bool window = false;  // 0 for the nodes nearer than the term's reach, which alone are read
};
const PositionRow& row_of(ScoreBias kind);  // of a term, so not of `none`

// Takes from scores [heads, n, n] what the mask leaves out: they become so low that no weight is
// left, and no gradient.
template <class T>
void mask_pairs(PairMask mask, int heads, const NodeContext<T>& nodes, const SamplePairs<T>& pairs,
                T* scores);

// What is done with queries and keys [rows, heads, 2 d_k] before their products are scores.
template <class T>
struct KeyFunctions {
  // In place; kept [rows, heads, 2] stays for the gradient.
  void (*prepare)(int64_t rows, int heads, int64_t key_size, const T* scale, T* query_key,
                  T* kept) = nullptr;
  // d becomes the gradient of what prepare was given; dscale += by head.
  void (*gradient)(int64_t rows, int heads, int64_t key_size, const T* scale, const T* query_key,
                   const T* kept, T* d, T* dscale) = nullptr;
  // Scores that are no products, of one head: scores [n, n] +=; dq =, dk = from dscores, where a
  // node attends to another.
  void (*scores)(const generic::HeadShape& keys, const T* q, const T* k, T* scores) = nullptr;
  void (*scores_gradient)(const generic::HeadShape& keys, const T* q, const T* k, const T* dscores,
                          T* dq, T* dk) = nullptr;
};
struct DataRow : InBoth<KeyFunctions> {
  bool changes_keys = false;                     // whether there is anything to do
  bool keeps_each = false;                       // kept is [rows, heads, 2 d_k]
  double (*factor)(int64_t key_size) = nullptr;  // of the products
  std::vector<TensorInfo> (*tensors)(const ModelSpec& layer) = nullptr;  // one by head, or none
  int degree = 0;  // of scores in queries and keys
};
const DataRow& row_of(Scores kind);

// The data among the source of queries and keys, divided by its size: y = x norm / |x| in parts of
// `part` numbers, norm = sqrt(part).
struct ScaleRow {
  bool by_sample = false;  // else by node
  int64_t part(int64_t nodes, int64_t width) const { return by_sample ? nodes * width : width; }
};
const ScaleRow* row_of(SourceScale kind);  // null: the data as it is

// One sample's queries and keys as the data row left them, and the term of positions or pairs.
template <class T>
struct ScoreParts {
  generic::HeadShape keys;  // of one head; later keys lie behind its queries
  int64_t heads = 0;
  const T* query_key = nullptr;  // null: the other part alone
  const T* positions = nullptr;  // [heads, n, n] or null
  const DataRow* data = nullptr;
  const AttentionBlock* block = nullptr;
  const T* tensor = nullptr;  // of the weighting, if it has one
};
// Their sum, [heads, n, n], where a node attends to another; elsewhere anything. `with_positions`
// false: the data's alone.
template <class T>
void make_scores(const ScoreParts<T>& parts, bool with_positions, T* scores,
                 std::vector<T>& scratch);
// dquery_key =, if there are any, from dscores, which may become 0 where no node attends.
template <class T>
void scores_gradient(const ScoreParts<T>& parts, T* dscores, T* dquery_key);

// Where a sample's weights are drawn: `uniform(row)` in [0, 1) for a row of [heads, n].
struct AttentionDraws {
  float uniform(int64_t row) const;

  StepContext context;
  int64_t first = 0;                   // of the rows of this sample and layer
  const std::vector<int>* index = {};  // of nodes at hand, in the full model
  int64_t nodes = 0;                   // of the full model
};
// o = A V of long inputs without the matrix A, prepared once for all samples.
template <class T>
struct LongMixing {
  virtual ~LongMixing() = default;
  // v, o [n, heads, values.size].
  virtual void mix(const ScoreParts<T>&, const generic::HeadShape& values, const T* v,
                   T* o) const = 0;
};
// What a layer keeps of the nodes that a sample has read (memory.h), and how it is made.
template <class T>
class NodeMemory;
template <class T>
struct MemoryShape;

template <class T>
struct WeightingFunctions {
  // `kept` [heads, n, n] where the row keeps something.
  void (*weights)(const ScoreParts<T>&, const AttentionDraws&, T* attention, T* kept,
                  std::vector<T>& scratch);
  // d attention becomes that of the scores (of positions, where the two differ), where a node
  // attends to another; dquery_key =, if there are any.
  void (*gradient)(const ScoreParts<T>&, const T* attention, const T* kept, T* dattention,
                   T* dquery_key);
  // In place of o = A V, of one head, and of its gradient as generic::mix_gradient has it.
  void (*mix)(const generic::HeadShape& values, const T* a, const T* v, T* o) = nullptr;
  void (*mix_gradient)(const generic::HeadShape& values, const T* a, const T* v, const T* d_o,
                       T* dv, bool accumulate, T* da) = nullptr;
  // Features [rows, heads, 2 m], whose products are scores, of queries and keys [rows, heads, 2
  // d_k], which may change in place; `kept` [rows, heads, 2] stays for the gradient, which turns
  // dfeatures into dquery_key.
  void (*features)(const ScoreParts<T>&, int64_t rows, T* query_key, T* kept,
                   T* features) = nullptr;
  void (*features_gradient)(const ScoreParts<T>&, int64_t rows, const T* query_key, const T* kept,
                            const T* features, T* dfeatures, T* dquery_key) = nullptr;
  // Null where the matrices are faster, or more exact.
  std::unique_ptr<LongMixing<T>> (*long_mixing)(const AttentionBlock&,
                                                const NodeContext<T>&) = nullptr;
  // Scores of one node to the `nodes` that it attends to become weights, as in tests: then keys and
  // values are what is kept node by node.
  void (*row_weights)(int64_t nodes, T* scores) = nullptr;
  // In place of keys and values; null where the shape allows nothing of the kind.
  std::unique_ptr<NodeMemory<T>> (*memory)(const MemoryShape<T>&) = nullptr;
};
struct WeightingRow : InBoth<WeightingFunctions> {
  std::vector<TensorInfo> (*tensors)(const ModelSpec& layer) = nullptr;  // one, or none
  bool rows_sum_to_one = true;
  bool random = false;  // in training, where every sample has weights of its own
  bool keeps = false;
  bool scale_free = false;             // does not change when all scores of a row are multiplied
  bool positions_are_factors = false;  // exp(B) times weights of the data alone
  bool adds_values = false;            // o = sums of a score and a value, so of one degree
  bool unit_keys = false;              // queries and keys are divided by their size
};
const WeightingRow& row_of(Weighting kind);

// Routes are attention itself, without scores and without a gradient.
template <class T>
void routed_attention_matrix(const RouteTerm& term, int heads, const NodeContext<T>& nodes, T* out);

}  // namespace posattn
