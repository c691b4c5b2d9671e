// A program on real machines: machine i is rank i of an MPI job, holds its s words alone, and hears
// of the others by messages. Rounds are synchronous, as in MPC: each begins with a sum over all
// ranks that tells everybody how many messages to expect and whether a machine has failed.
//
// In a round of MPC a machine sends and receives at most s words: those it keeps, and one for each
// receive of the program's largest round. Each copy counts; what a machine reads from itself is
// free. A program's round in which a word has more readers than that takes several of MPC
// (passing.h); what a machine receives in it counts together, since it is kept until all is there.
// So a sum over all machines is too much for one, as it should be.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posattn/mpi/ranks.h"
#include "posattn/programs/form/static_program.h"

namespace posattn {

struct MachineRun {
  std::vector<double> outputs;           // of this machine
  int64_t messages = 0;                  // sent by it
  int rounds = 0;                        // of MPC
  int most_sent = 0, most_received = 0;  // words in a round
};

int machine_words(const StaticProgram& program);  // s

// Collective, on as many ranks as the program has processors. `input` is this machine's. The same
// numbers as run_static<double>, the same Error(data) where that refuses, and another where a
// machine goes beyond its s words; it is thrown on those ranks that it happens to, and all return.
MachineRun run_machine(const StaticProgram& program, std::span<const double> input, Ranks& ranks);

}  // namespace posattn
