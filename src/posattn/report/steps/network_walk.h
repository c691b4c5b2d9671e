// The way of one input through a trained model: the numbers of every node after each layer, and the
// attention that led there.
#pragma once

#include "posattn/model/batch.h"
#include "posattn/model/model_file.h"
#include "posattn/report/steps/walk.h"

namespace posattn {

// Throws Error(usage) for a walk that is too large, else as check_batch does.
Walk network_walk(const Model& model, const Batch& one_sample);

}  // namespace posattn
