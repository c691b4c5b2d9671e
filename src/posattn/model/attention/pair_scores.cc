// Scores made of a sample's pairs of nodes, without its data:
//   S_h[i, j] = t_h[class of (i, j)] + w_h . numbers of (i, j),
// with scores of their own for scratch nodes, which have no pairs (kernels/generic/relative.h).
//   dt_h[c] += sum of dS_h over the pairs of class c,  dw_h += sum of dS_h[i, j] numbers of (i, j)
#include "posattn/kernels/generic/relative.h"
#include "posattn/model/attention/tables.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

constexpr double unread = -1e30;  // as a score: its exp is 0 beside that of any other

// The term's tensors, or their gradients; null where the model has none.
template <class Number>
struct PairTables {
  Number *classes = nullptr, *numbers = nullptr, *scratch = nullptr;
};

template <class Find>
auto tables_of(const PositionTerm& term, const ModelSpec& spec, const Find& find) {
  PairTables<std::remove_pointer_t<decltype(find(TensorId()))>> tables;
  auto next = term.tensors.begin();
  if (spec.pair_classes > 0) tables.classes = find(*next++);
  if (spec.pair_columns > 0) tables.numbers = find(*next++);
  if (spec.scratch_nodes > 0) tables.scratch = find(*next);
  return tables;
}

// Calls pair(head, place of the score, pair of real nodes) or scratch(place of the score, place
// among the scores of scratch nodes).
template <class Pair, class Scratch>
void visit_scores(int heads, const ModelSpec& spec, int real, const Pair& pair,
                  const Scratch& scratch) {
  const generic::RelativeShape shape{real, spec.scratch_nodes, 1};
  int64_t at = 0;
  for (int64_t h = 0; h < heads; ++h) {
    for (int32_t i = 0; i < shape.nodes(); ++i) {
      for (int32_t j = 0; j < shape.nodes(); ++j, ++at) {
        if (shape.by_distance(i, j)) {
          pair(h, at, int64_t{1} * i * real + j);
        } else {
          scratch(at, h * shape.scratch_size() + shape.scratch_place(i, j));
        }
      }
    }
  }
}

struct Pairs {
  static std::vector<TensorInfo> tensors(const ModelSpec& spec, bool) {
    const int64_t heads = spec.heads, scratch = spec.scratch_nodes;
    std::vector<TensorInfo> tensors;
    const auto add = [&](std::string_view name, std::vector<int64_t> shape) {
      tensors.push_back({.name = std::string(name), .shape = std::move(shape)});
    };
    if (spec.pair_classes > 0) add(names::pair_class_scores, {heads, spec.pair_classes});
    if (spec.pair_columns > 0) add(names::pair_number_scores, {heads, spec.pair_columns});
    if (scratch > 0) add(names::pair_scratch_scores, {heads, scratch, scratch + 2});
    return tensors;
  }

  template <class T>
  static void scores(const PositionTerm& term, int heads, const NodeContext<T>& nodes,
                     const SamplePairs<T>& pairs, T* out) {
    const ModelSpec& spec = nodes.spec;
    const int64_t classes = spec.pair_classes, columns = spec.pair_columns;
    const auto t = tables_of(term, spec, [&](TensorId id) { return nodes.tensor(id); });
    visit_scores(
        heads, spec, nodes.real_nodes,
        [&](int64_t h, int64_t at, int64_t pair) {
          T score = t.classes ? t.classes[h * classes + pairs.classes[pair]] : T(0);
          for (int64_t c = 0; c < columns; ++c) {
            score += t.numbers[h * columns + c] * pairs.numbers[pair * columns + c];
          }
          out[at] = score;
        },
        [&](int64_t at, int64_t place) { out[at] = t.scratch[place]; });
  }

  template <class T>
  static void gradient(const PositionTerm& term, int heads, const NodeContext<T>& nodes,
                       const SamplePairs<T>& pairs, const T* dscores, T* sums) {
    const ModelSpec& spec = nodes.spec;
    const int64_t classes = spec.pair_classes, columns = spec.pair_columns;
    const std::vector<TensorInfo>& tensors = nodes.parameters.layout().tensors();
    const auto d = tables_of(term, spec, [&](TensorId id) { return sums + tensors[id].offset; });
    visit_scores(
        heads, spec, nodes.real_nodes,
        [&](int64_t h, int64_t at, int64_t pair) {
          if (d.classes) d.classes[h * classes + pairs.classes[pair]] += dscores[at];
          for (int64_t c = 0; c < columns; ++c) {
            d.numbers[h * columns + c] += dscores[at] * pairs.numbers[pair * columns + c];
          }
        },
        [&](int64_t at, int64_t place) { d.scratch[place] += dscores[at]; });
  }
};

constexpr PositionRow pairs_of_nodes() {
  PositionRow row;
  row.in_float = {nullptr, nullptr, nullptr, Pairs::scores<float>, Pairs::gradient<float>};
  row.in_double = {nullptr, nullptr, nullptr, Pairs::scores<double>, Pairs::gradient<double>};
  row.tensors = Pairs::tensors;
  row.of_pairs = true;
  return row;
}

}  // namespace

constinit const PositionRow pairs_row = pairs_of_nodes();

template <class T>
void mask_pairs(PairMask mask, int heads, const NodeContext<T>& nodes, const SamplePairs<T>& pairs,
                T* scores) {
  if (mask == PairMask::none) return;
  const int64_t n = nodes.count(), real = nodes.real_nodes;
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < real; ++i) {
      for (int64_t j = 0; j < real; ++j) {
        if (i != j && pairs.classes[i * real + j] == 0) scores[(h * n + i) * n + j] = T(unread);
      }
    }
  }
}

template void mask_pairs(PairMask, int, const NodeContext<float>&, const SamplePairs<float>&,
                         float*);
template void mask_pairs(PairMask, int, const NodeContext<double>&, const SamplePairs<double>&,
                         double*);

}  // namespace posattn
