// Loads the module that has MPI.
#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/mpi/launch.h"
#include "posattn/mpi/ranks.h"
#include "posattn/mpi/with_mpi/mpi_module.h"

namespace posattn {

OpenRanks open_ranks() {
  const ModuleFunction open = mpi_module_function("posattn_open_ranks");
  if (open.address == nullptr) {
    throw Error(ExitCode::device, fmt::format("cannot load MPI: {}", open.problem), "",
                "install Open MPI (Debian: apt-get install openmpi-bin libopenmpi-dev) and build "
                "again, or start the program without mpirun");
  }
  OpenRanks ranks(reinterpret_cast<Ranks* (*)()>(open.address)());
  // Another MPI's launcher starts processes of which each believes to be alone.
  if (const int expected = launch_from_environment().size; ranks->size() != expected) {
    throw Error(ExitCode::device,
                fmt::format("{} ranks were started, and MPI sees {}", expected, ranks->size()),
                "a launcher of the MPI that posattn was built with",
                "mpirun of Open MPI, or srun --mpi=pmix");
  }
  return ranks;
}

}  // namespace posattn
