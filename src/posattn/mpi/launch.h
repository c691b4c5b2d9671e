// Whether this process is one of several ranks, without touching MPI: a program that was started
// alone must neither load nor initialise it.
//
// The launcher's environment decides. A rank is a process with
//   OMPI_COMM_WORLD_SIZE above 1               mpirun of Open MPI
//   PMI_RANK, and PMI_SIZE above 1             mpirun of MPICH and Intel MPI, srun --mpi=pmi2
//   PMIX_RANK, and SLURM_STEP_NUM_TASKS above 1     srun --mpi=pmix
// SLURM_NTASKS says nothing: a batch script has it too, and it is no rank.
#pragma once

#include <string>
#include <vector>

namespace posattn {

// What the launcher says, before MPI is initialised; rank 0 of 1 for a process on its own.
struct Launch {
  int rank = 0, size = 1;
  bool several() const { return size > 1; }
};
Launch launch_from_environment();

// The environment as NAME=VALUE for a process that a rank starts and that is none itself: without
// the launcher's variables.
std::vector<std::string> environment_without_launcher();

}  // namespace posattn
