// Measuring a model on fresh test sets, and its answers to rows of numbers.
// Threads: these functions only read the model, and keep nothing: several threads may measure one.
// One of the installed headers (docs/architecture.md, "The interface"). What they include comes
// along, and may change; what they name is meant to stay.
#pragma once

#include "posattn/evaluation/evaluate.h"
#include "posattn/evaluation/predict.h"
#include "posattn/evaluation/summary.h"
