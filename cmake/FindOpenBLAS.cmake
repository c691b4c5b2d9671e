# OpenBLAS in its pthread variant. The serial variant has the same file name but is not thread-safe;
# the program checks at start-up which one it was given.
find_path(OpenBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas-pthread openblas
          HINTS /usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
# Fedora gives the pthread variant a name of its own.
find_library(OpenBLAS_LIBRARY NAMES openblasp openblas PATH_SUFFIXES openblas-pthread)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenBLAS REQUIRED_VARS OpenBLAS_LIBRARY OpenBLAS_INCLUDE_DIR)
if(OpenBLAS_FOUND AND NOT TARGET OpenBLAS::OpenBLAS)
  add_library(OpenBLAS::OpenBLAS UNKNOWN IMPORTED)
  set_target_properties(OpenBLAS::OpenBLAS PROPERTIES IMPORTED_LOCATION ${OpenBLAS_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${OpenBLAS_INCLUDE_DIR})
endif()
