// Whether a batch is one that a model can read: every engine asks before it computes.
#pragma once

#include "posattn/model/spec/batch.h"
#include "posattn/model/spec/spec.h"
#include "posattn/tasks/task.h"

namespace posattn {

// Throw Error(data) for arrays of another size than the spec's, tokens that it does not have,
// classes that it does not know and pairs that are no finite numbers; Error(configuration) for a
// length that its attention does not have.
template <class T>
void check_batch(const ModelSpec& spec, const BatchOf<T>& batch);
template <class T>
void check_targets(const ModelSpec& spec, const BatchOf<T>& batch);

// Whether a task has the pairs that a model reads; it may have others too.
inline bool pairs_fit(const ModelSpec& spec, const TaskShape& shape) {
  return (spec.pair_columns == 0 || spec.pair_columns == shape.pair_columns) &&
         (spec.pair_classes == 0 || spec.pair_classes == shape.pair_classes);
}

}  // namespace posattn
