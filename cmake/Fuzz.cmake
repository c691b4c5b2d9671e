# One libFuzzer program for each x_fuzz.cc beside the code it attacks. Needs clang, and the library
# itself instrumented: -DPOSATTN_SANITIZE=address,undefined,fuzzer-no-link (./check --full does so).
file(GLOB_RECURSE POSATTN_FUZZ_SOURCES CONFIGURE_DEPENDS src/posattn/*_fuzz.cc)
foreach(source IN LISTS POSATTN_FUZZ_SOURCES)
  cmake_path(GET source STEM name)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE posattn)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endforeach()
