// Computing with a model: answers (Inference), losses and gradients (Network), activations by name
// (run_with_hook). A Watch ends a long call of any kind.
//   posattn::Inference inference(model);
//   std::vector<float> y = inference.run({.inputs = x, .samples = 1, .real_nodes = 8});
// Threads: any number of them may use one Inference at once. A Network belongs to one thread at a
// time, except that once it is prepared any number may call run.
// One of the installed headers (docs/architecture.md, "The interface"). What they include comes
// along, and may change; what they name is meant to stay.
#pragma once

#include "posattn/base/watch.h"
#include "posattn/model/hooks.h"
#include "posattn/model/inference.h"
#include "posattn/model/network.h"
#include "posattn/model/spec/check_batch.h"
