// Whether a batch is one that a model can read: every engine asks before it computes.
#pragma once

#include "posattn/model/spec/batch.h"
#include "posattn/model/spec/spec.h"

namespace posattn {

// Throw Error(data) for arrays of another size than the spec's, tokens that it does not have and
// classes that it does not know; Error(configuration) for a length that its attention does not
// have.
template <class T>
void check_batch(const ModelSpec& spec, const BatchOf<T>& batch);
template <class T>
void check_targets(const ModelSpec& spec, const BatchOf<T>& batch);

}  // namespace posattn
