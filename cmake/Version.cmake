# Version, commit, compiler and flags, for manifests and `posattn doctor`.
execute_process(COMMAND git -C ${CMAKE_CURRENT_SOURCE_DIR} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE POSATTN_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT POSATTN_COMMIT)
  set(POSATTN_COMMIT "unknown")
endif()
# A new commit configures anew, so that manifests never name an older one.
if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/.git/logs/HEAD)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS .git/logs/HEAD)
endif()
string(TOUPPER "${CMAKE_BUILD_TYPE}" POSATTN_BUILD_UPPER)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${POSATTN_BUILD_UPPER}}" POSATTN_FLAGS)
configure_file(cmake/version.cc.in ${CMAKE_CURRENT_BINARY_DIR}/version.cc @ONLY)
target_sources(posattn_core PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/version.cc)
