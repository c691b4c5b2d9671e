// Training: one run, a fleet of runs in folders, or your own loop with an optimiser.
//   posattn::Run run(posattn::read_config_text("task = \"sort\"\n", "mine").config, 2);
//   while (!run.finished()) run.advance_epoch();
// One of the installed headers (docs/architecture.md, "The interface"). What they include comes
// along, and may change; what they name is meant to stay.
#pragma once

#include "posattn/training/fleet.h"
#include "posattn/training/optimiser.h"
#include "posattn/training/run.h"
#include "posattn/training/run_config.h"
#include "posattn/training/run_parts.h"
#include "posattn/training/start.h"
