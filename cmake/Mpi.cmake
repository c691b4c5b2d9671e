# MPI, in a module that the program loads only under mpirun or srun (mpi/ranks.h). Without MPI the
# stand-in of mpi/no_mpi/ says how to get it.
set(POSATTN_MPI AUTO CACHE STRING "Work in several ranks: ON, OFF, or AUTO (where MPI is found)")
set_property(CACHE POSATTN_MPI PROPERTY STRINGS AUTO ON OFF)
set(folder src/posattn/mpi/no_mpi)
if(POSATTN_MPI)
  find_package(MPI QUIET COMPONENTS C)
  if(MPI_C_FOUND)
    set(folder src/posattn/mpi/with_mpi)
  elseif(NOT POSATTN_MPI STREQUAL "AUTO")
    message(FATAL_ERROR "POSATTN_MPI is ON, but no MPI was found. Install it (Debian: apt-get install "
      "libopenmpi-dev openmpi-bin), or build without (-DPOSATTN_MPI=OFF).")
  endif()
endif()
set(sources ${folder}/open_ranks.cc ${folder}/mpi_info.cc)
target_sources(posattn_core PRIVATE ${sources})
if(folder MATCHES "/with_mpi$")
  # From the folder of the installed program.
  file(RELATIVE_PATH module ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/posattn/posattn_mpi.so)
  set_source_files_properties(${sources} PROPERTIES
    COMPILE_DEFINITIONS "POSATTN_MPI_MODULE=\"${module}\"")
  add_library(posattn_mpi MODULE src/posattn/mpi/module/mpi_ranks.cc src/posattn/base/error.cc)
  target_include_directories(posattn_mpi PRIVATE src)
  # MPI in C: its C++ bindings are gone from the standard.
  target_compile_definitions(posattn_mpi PRIVATE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  target_link_libraries(posattn_mpi PRIVATE MPI::MPI_C fmt::fmt)
  set_target_properties(posattn_mpi PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  install(TARGETS posattn_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/posattn OPTIONAL)
endif()
