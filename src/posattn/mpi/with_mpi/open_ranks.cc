// Loads the module that has MPI. It lies beside the program in a build folder, and under
// POSATTN_MPI_MODULE (from the program's folder) in an installation.
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "posattn/base/error.h"
#include "posattn/mpi/launch.h"
#include "posattn/mpi/ranks.h"

namespace posattn {

OpenRanks open_ranks() {
  namespace fs = std::filesystem;
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  fs::path module = folder / "posattn_mpi.so";
  if (!fs::exists(module)) module = folder / POSATTN_MPI_MODULE;
  // Global, because Open MPI's own plugins look for its symbols there.
  void* library = dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* function = library == nullptr ? nullptr : dlsym(library, "posattn_open_ranks");
  if (function == nullptr) {
    throw Error(ExitCode::device, fmt::format("cannot load MPI: {}", dlerror()), "",
                "install Open MPI (Debian: apt-get install openmpi-bin libopenmpi-dev) and build "
                "again, or start the program without mpirun");
  }
  OpenRanks ranks(reinterpret_cast<Ranks* (*)()>(function)());
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
