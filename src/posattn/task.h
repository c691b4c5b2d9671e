// Tasks and their samples: the built-in ones, and your own by register_task.
//   posattn::Dataset set = posattn::make_dataset({.task = &posattn::find_task("sort"), ...});
// Threads: tasks do not change, and any thread may ask one; make_dataset asks from several, so the
// functions of your own task must allow that. Register it before other threads ask for tasks.
// One of the installed headers (docs/architecture.md, "The interface"). What they include comes
// along, and may change; what they name is meant to stay.
#pragma once

#include "posattn/tasks/dataset.h"
#include "posattn/tasks/task.h"
