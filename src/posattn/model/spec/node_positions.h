// Where nodes stand, for encodings by formula and for RoPE.
#pragma once

#include <vector>

#include "posattn/model/spec/batch.h"
#include "posattn/model/spec/spec.h"

namespace posattn {

// Of the real nodes at hand, then of scratch nodes. Real node i of n stands at i and a scratch node
// where it stands in the full model, or, with a range L = position_range (arXiv 2305.16843):
//   in training, at the i-th smallest of n places drawn from 0 .. L - 1, anew for each step
//   else, at floor((i + 1)(L + 1) / (n + 1)) - 1, its mean in training rounded down
// and scratch nodes at L, L + 1, ... Models so see large positions at every length.
std::vector<int> node_positions(const ModelSpec& spec, int real_nodes, const StepContext& context);

}  // namespace posattn
