// The module that has MPI. It lies beside the program in a build folder, and under
// POSATTN_MPI_MODULE (from the program's folder) in an installation.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <string>

namespace posattn {

// One of its functions, or nullptr and why.
struct ModuleFunction {
  void* address = nullptr;
  std::string problem;
};

inline ModuleFunction mpi_module_function(const char* name) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  fs::path module = folder / "posattn_mpi.so";
  if (!fs::exists(module)) module = folder / POSATTN_MPI_MODULE;
  // Global, because Open MPI's own plugins look for its symbols there.
  void* library = dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL);
  void* function = library == nullptr ? nullptr : dlsym(library, name);
  if (function == nullptr) return {nullptr, dlerror()};
  return {function, ""};
}

}  // namespace posattn
