// How much arithmetic a plan is.
#pragma once

#include "posattn/model/network.h"
#include "posattn/model/plan/plan.h"

namespace posattn {

// Multiply-adds of the layers, forward, at the model's own length: linear maps, scores and mixing.
// Computed by the plain executor: all of it, but of causal attention the half that is heard.
Network::Work plan_work(const ModelSpec& spec, const Plan& plan);

}  // namespace posattn
