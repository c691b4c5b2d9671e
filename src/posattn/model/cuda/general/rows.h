// The rows of attention on a GPU, as those on the CPU (model/attention/rows.h): the general engine
// walks them and knows none by name.
#pragma once

#include "posattn/model/cuda/general/step.h"

namespace posattn::cuda {

// Scores that are the same for all samples, [heads, nodes, attention_stride].
struct PositionRow {
  void (*scores)(GeneralStep& step, const PositionTerm& term, int layer, Rows<float> scores);
  void (*gradient)(GeneralStep& step, const PositionTerm& term, int layer, Rows<float> dscores);
};
extern const PositionRow query_key_row, direct_row, distance_row;
const PositionRow& row_of(ScoreBias kind);

// What is done with queries and keys of the data before their products are scores, and back.
struct DataRow {
  void (*prepare)(GeneralStep& step, int layer, int64_t count);
  void (*gradient)(GeneralStep& step, int layer, int64_t first, int64_t count);
  void (*finish)(GeneralStep& step, int layer);  // gradients of its tensors
};
const DataRow* row_of(Scores kind);  // null: nothing

// What attention is made of behind the softmax of a chunk's scores; the gradient goes through that
// softmax.
struct WeightingRow {
  void (*weights)(GeneralStep& step, int layer, int64_t first, int64_t count);
};
const WeightingRow* row_of(Weighting kind);  // null: the softmax itself

}  // namespace posattn::cuda
