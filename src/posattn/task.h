// Tasks and their samples: the built-in ones, and your own by register_task.
//   posattn::Dataset set = posattn::make_dataset({.task = &posattn::find_task("sort"), ...});
// One of the installed headers (docs/architecture.md, "The interface"). What they include comes
// along, and may change; what they name is meant to stay.
#pragma once

#include "posattn/tasks/dataset.h"
#include "posattn/tasks/task.h"
