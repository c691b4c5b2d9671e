// Whether a model is what the compiler makes of its program.
#pragma once

#include <string>

#include "posattn/model/file/model_file.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {

// How the model differs from what compile() writes for the program, in a few words, or "". The
// sizes, and whether attention is dense and how sharp, are the model's own. Throws Error(data)
// where compile() refuses the program, or would write another training range into the file: that
// range decides what is tested.
std::string difference_from_compiled(const Model& model, const RoutedProgram& routed);

}  // namespace posattn
