// What a model is, its weights, and its file.
//   posattn::Model model = posattn::load_model("model.safetensors");
// Threads: a model, its spec and its weights are plain values. Any number of threads may read one;
// whoever changes it has it alone. Files may be loaded and saved by several threads at once.
// One of the installed headers (docs/architecture.md, "The interface"). What they include comes
// along, and may change; what they name is meant to stay.
#pragma once

#include "posattn/model/file/model_file.h"
#include "posattn/model/spec/parameters.h"
#include "posattn/model/spec/spec.h"
