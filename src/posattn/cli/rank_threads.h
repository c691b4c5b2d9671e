// How many threads a rank may use where others run on the same cores.
#pragma once

#include "posattn/mpi/ranks.h"

namespace posattn {

// Collective. `requested`, or for 0 this rank's share of the cores that it may use.
int own_threads(Ranks& ranks, int requested);

}  // namespace posattn
