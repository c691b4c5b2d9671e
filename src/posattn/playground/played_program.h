// A program that a page holds: as it is written, as its network carries it out, and its weights.
#pragma once

#include "posattn/model/file/model_file.h"
#include "posattn/playground/answer.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/programs/lowering/network_plan.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn::playground {

struct PlayedProgram {
  StaticProgram written;
  RoutedProgram routed;  // without messages: what the network carries out
  NetworkPlan plan;
  Model compiled, model;  // as compiled, and with noise
};

Handles<PlayedProgram>& programs();

}  // namespace posattn::playground
