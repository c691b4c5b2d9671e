// The ranks of a build without MPI: there are none.
#include "posattn/base/error.h"
#include "posattn/mpi/ranks.h"

namespace posattn {

OpenRanks open_ranks() {
  throw Error(ExitCode::device, "this build has no MPI, so that it cannot work in several ranks",
              "",
              "apt-get install libopenmpi-dev openmpi-bin, then configure with "
              "-DPOSATTN_MPI=ON and build again; or start the program without mpirun");
}

}  // namespace posattn
