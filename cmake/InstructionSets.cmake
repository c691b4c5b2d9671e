# The tile kernels are compiled once per instruction set from the same source and chosen at run time
# (kernels/cpu/dispatch.cc), so that one binary runs well from SSE4.2 to AVX-512.
# These files must not instantiate templates of the standard library: the linker might keep
# the copy compiled for the newest instruction set.
foreach(level IN ITEMS "2:4" "3:8" "4:16")
  string(REPLACE ":" ";" pair ${level})
  list(GET pair 0 version)
  list(GET pair 1 lanes)
  add_library(posattn_isa_v${version} OBJECT src/posattn/kernels/cpu/isa_kernels.cc)
  target_include_directories(posattn_isa_v${version} PRIVATE src)
  target_compile_options(posattn_isa_v${version} PRIVATE -march=x86-64-v${version} -O3
    -fno-math-errno -fno-trapping-math -ffp-contract=fast -Wno-psabi
    # GCC 12 warns inside its AVX-512 header.
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>")
  target_compile_definitions(posattn_isa_v${version} PRIVATE POSATTN_LANES=${lanes}
    POSATTN_ISA=kernels_v${version} POSATTN_ISA_NAME="x86-64-v${version}")
  if(POSATTN_SANITIZE)  # line numbers took a quarter of the time for x86-64-v4
    target_compile_options(posattn_isa_v${version} PRIVATE -g0)
  endif()
  set_target_properties(posattn_isa_v${version} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  list(APPEND POSATTN_CORE_OBJECTS $<TARGET_OBJECTS:posattn_isa_v${version}>)
endforeach()
