# cmake --install: the library, its headers, the program, and the package posattn::posattn
# (examples/cmake_project uses it; ./check builds that against a fresh installation).
include(CMakePackageConfigHelpers)
set(POSATTN_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/posattn)

install(TARGETS posattn EXPORT posattnTargets)
install(TARGETS posattn_cli)
install(DIRECTORY src/posattn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*_test.h" EXCLUDE PATTERN "cli" EXCLUDE
  PATTERN "cuda" EXCLUDE PATTERN "no_cuda" EXCLUDE  # the CUDA engine's inside
  PATTERN "strict_json.h" EXCLUDE  # these need libraries that users need not have
  PATTERN "json_number.h" EXCLUDE PATTERN "toml.h" EXCLUDE
  PATTERN "vector.h" EXCLUDE)      # for one source file, compiled once per instruction set
install(FILES src/posattn/kernels/cuda/device_info.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/posattn/kernels/cuda)
install(PROGRAMS bench/peer_torch.py DESTINATION ${CMAKE_INSTALL_DATADIR}/posattn/bench)
install(FILES LICENSE CITATION.cff DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT posattnTargets NAMESPACE posattn:: DESTINATION ${POSATTN_PACKAGE_DIR})
configure_package_config_file(cmake/posattnConfig.cmake.in posattnConfig.cmake
  INSTALL_DESTINATION ${POSATTN_PACKAGE_DIR})
write_basic_package_version_file(posattnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/posattnConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/posattnConfigVersion.cmake cmake/FindOpenBLAS.cmake
  DESTINATION ${POSATTN_PACKAGE_DIR})
