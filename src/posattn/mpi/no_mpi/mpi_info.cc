#include "posattn/mpi/mpi_info.h"

namespace posattn {

MpiInfo mpi_info() {
  MpiInfo info;
  info.problem = "not built";
  info.hint =
      "apt-get install libopenmpi-dev openmpi-bin, configure with -DPOSATTN_MPI=ON and build again";
  return info;
}

}  // namespace posattn
