// --input of a model: a file, or one sample as people write it.
#pragma once

#include <string>

#include "posattn/evaluation/samples_io.h"

namespace posattn {

// `input` is a file, or the numbers or the text of one sample. Throws Error(data).
ReadSamples read_input(const std::string& input, const Model& model);

}  // namespace posattn
