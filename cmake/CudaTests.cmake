# The tests that posattn_emulated_tests runs in the emulator, on a GPU. Without one they are skipped,
# aloud.
posattn_cuda_library(posattn_cuda_test_kernels ${POSATTN_CUDA_TEST_KERNELS})
add_executable(posattn_cuda_tests tests/cuda_main.cc ${POSATTN_CUDA_TEST_SOURCES}
  $<TARGET_OBJECTS:posattn_cuda_test_kernels>)
target_precompile_headers(posattn_cuda_tests PRIVATE <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h>
  <nlohmann/json.hpp>)
target_compile_options(posattn_cuda_tests PRIVATE -O1)
target_link_libraries(posattn_cuda_tests PRIVATE posattn CUDA::cudart_static GTest::gmock
  OpenMP::OpenMP_CXX OpenBLAS::OpenBLAS fmt::fmt nlohmann_json::nlohmann_json
  tomlplusplus::tomlplusplus)
set_target_properties(posattn_cuda_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
add_test(NAME cuda COMMAND posattn_cuda_tests)
set_tests_properties(cuda PROPERTIES LABELS device SKIP_RETURN_CODE 77)
