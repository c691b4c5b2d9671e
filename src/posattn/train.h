// Training: one run, a fleet of runs in folders, or your own loop with an optimiser.
//   posattn::Run run(posattn::read_config_text("task = \"sort\"\n", "mine").config, 2);
//   while (!run.finished()) run.advance_epoch();
// Threads: a Run belongs to one thread at a time; different ones may train in different threads.
// Any thread may set `stop`. train_fleet calls `progress` from its threads, one at a time.
// One of the installed headers (docs/architecture.md, "The interface"). What they include comes
// along, and may change; what they name is meant to stay.
#pragma once

#include "posattn/training/fleet.h"
#include "posattn/training/optimiser.h"
#include "posattn/training/run.h"
#include "posattn/training/run_config.h"
