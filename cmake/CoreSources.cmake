# How the library's sources are compiled, whatever the processor.
# Every backend must make the same samples: no fused a + (b - a) u.
set_source_files_properties(src/posattn/base/random.cc PROPERTIES COMPILE_OPTIONS -ffp-contract=off
  SKIP_PRECOMPILE_HEADERS ON)

# The files of one folder compile as one, and so the templates that they share once; the tests too
# in the sanitizers' builds (CMAKE_UNITY_BUILD, in the presets). That each includes what it needs is
# seen with -DPOSATTN_UNITY=OFF, as clang-tidy does.
foreach(source IN LISTS POSATTN_SOURCES POSATTN_TEST_SOURCES)
  cmake_path(GET source PARENT_PATH folder)
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/src/posattn)
  string(MAKE_C_IDENTIFIER ${folder} group)
  set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
endforeach()
set_target_properties(posattn_core PROPERTIES UNITY_BUILD "${POSATTN_UNITY}" UNITY_BUILD_MODE GROUP)
if(POSATTN_UNITY)  # a name of one file does not shadow those of another
  target_compile_options(posattn_core PRIVATE -Wno-shadow)
endif()

# Compiled with the others of its folder, the block executor is 2 % slower (gcc 12).
set_source_files_properties(src/posattn/model/plan/block_network.cc PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON)

# Most of the build time is the parsing of these headers.
target_precompile_headers(posattn_core PRIVATE <fmt/format.h> <nlohmann/json.hpp>)

# With the sanitizers optimising takes longer than parsing, and these rooms have no loops that tests
# wait for.
if(POSATTN_SANITIZE)
  get_target_property(sources posattn_core SOURCES)
  set(cold ${sources})
  list(FILTER cold INCLUDE REGEX "/posattn/(benchmark|evaluation|experiments|playground|report|results|text)/")
  list(REMOVE_ITEM sources ${cold})
  set_property(TARGET posattn_core PROPERTY SOURCES ${sources})
  add_library(posattn_cold OBJECT ${cold})
  foreach(property IN ITEMS INCLUDE_DIRECTORIES LINK_LIBRARIES COMPILE_OPTIONS PRECOMPILE_HEADERS
          POSITION_INDEPENDENT_CODE UNITY_BUILD UNITY_BUILD_MODE)
    get_target_property(value posattn_core ${property})
    set_property(TARGET posattn_cold PROPERTY ${property} "${value}")
  endforeach()
  target_compile_options(posattn_cold PRIVATE -O0)
  list(APPEND POSATTN_CORE_OBJECTS $<TARGET_OBJECTS:posattn_cold>)
endif()
