# cmake --install: the library, its interface, the program, and the package posattn::posattn
# (examples/cmake_project uses it; ./check builds that against a fresh installation).
include(CMakePackageConfigHelpers)
set(POSATTN_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/posattn)

install(TARGETS posattn EXPORT posattnTargets)
install(TARGETS posattn_cli OPTIONAL)  # a build of the library alone can be installed, too
# The interface is these headers. What they include is installed with them and nothing else: the list is
# made from the sources, so that no header of the inside slips out.
set(POSATTN_PUBLIC_HEADERS model.h network.h task.h train.h evaluate.h program.h draw.h
  experiment.h bound.h)
function(posattn_headers_behind header result)
  set(found ${${result}})
  if(NOT header IN_LIST found)
    list(APPEND found ${header})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS src/posattn/${header})
    file(STRINGS src/posattn/${header} lines REGEX "^#include \"posattn/")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"posattn/([^\"]+)\".*" "\\1" next "${line}")
      posattn_headers_behind(${next} found)
    endforeach()
  endif()
  set(${result} ${found} PARENT_SCOPE)
endfunction()
foreach(header IN LISTS POSATTN_PUBLIC_HEADERS)
  posattn_headers_behind(${header} POSATTN_INSTALLED_HEADERS)
endforeach()
foreach(header IN LISTS POSATTN_INSTALLED_HEADERS)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES src/posattn/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/posattn/${folder})
endforeach()
# The Python package shows what the interface is good for: it uses nothing else.
file(GLOB POSATTN_MODULE_SOURCES CONFIGURE_DEPENDS python/module/*)
foreach(source IN LISTS POSATTN_MODULE_SOURCES)
  file(STRINGS ${source} lines REGEX "^#include \"posattn/")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "^#include \"posattn/([^\"]+)\".*" "\\1" header "${line}")
    if(NOT header IN_LIST POSATTN_INSTALLED_HEADERS)
      message(FATAL_ERROR "${source} includes posattn/${header}, which is not installed")
    endif()
  endforeach()
endforeach()
install(PROGRAMS bench/peer_torch.py bench/token_torch.py DESTINATION ${CMAKE_INSTALL_DATADIR}/posattn/bench)
# The manual pages are what the program says of itself.
if(NOT POSATTN_SANITIZE AND (NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR))
  add_custom_command(TARGET posattn_cli POST_BUILD VERBATIM
    COMMAND posattn_cli help --manual ${CMAKE_CURRENT_BINARY_DIR}/man/man1)
endif()
install(DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)
# The page of `posattn playground`.
install(FILES docs/playground/index.html DESTINATION ${CMAKE_INSTALL_DATADIR}/posattn
  RENAME playground.html)
install(FILES LICENSE CITATION.cff DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT posattnTargets NAMESPACE posattn:: DESTINATION ${POSATTN_PACKAGE_DIR})
configure_package_config_file(cmake/posattnConfig.cmake.in posattnConfig.cmake
  INSTALL_DESTINATION ${POSATTN_PACKAGE_DIR})
write_basic_package_version_file(posattnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/posattnConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/posattnConfigVersion.cmake cmake/FindOpenBLAS.cmake cmake/FindPCRE2.cmake
  DESTINATION ${POSATTN_PACKAGE_DIR})
