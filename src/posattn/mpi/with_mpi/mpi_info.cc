#include "posattn/mpi/mpi_info.h"

#include "posattn/mpi/with_mpi/mpi_module.h"

namespace posattn {

MpiInfo mpi_info() {
  MpiInfo info;
  info.built = true;
  const ModuleFunction version = mpi_module_function("posattn_mpi_version");
  if (version.address == nullptr) {
    info.problem = version.problem;
    info.hint = "apt-get install openmpi-bin libopenmpi-dev";
    return info;
  }
  info.usable = true;
  info.library = reinterpret_cast<const char* (*)()>(version.address)();
  return info;
}

}  // namespace posattn
