# The tile kernels are compiled once per instruction set from the same source and chosen at run time
# (kernels/cpu/dispatch.cc), so that one binary runs well from SSE4.2 to AVX-512. Other processors have
# one set of kernels, with vectors of four floats: those of NEON on 64-bit ARM.
# These files must not instantiate templates of the standard library: the linker might keep
# the copy compiled for the newest instruction set.
function(posattn_kernels target lanes table name)
  add_library(${target} OBJECT src/posattn/kernels/cpu/isa_kernels.cc)
  target_include_directories(${target} PRIVATE src)
  target_compile_options(${target} PRIVATE ${ARGN} -O3 -fno-math-errno -fno-trapping-math
    -ffp-contract=fast -Wno-psabi
    # GCC 12 warns inside its AVX-512 header.
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-uninitialized>")
  target_compile_definitions(${target} PRIVATE POSATTN_LANES=${lanes} POSATTN_ISA=${table}
    POSATTN_ISA_NAME="${name}")
  if(POSATTN_SANITIZE)  # line numbers took a quarter of the time for x86-64-v4
    target_compile_options(${target} PRIVATE -g0)
  endif()
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  set(POSATTN_CORE_OBJECTS ${POSATTN_CORE_OBJECTS} $<TARGET_OBJECTS:${target}> PARENT_SCOPE)
endfunction()

if(POSATTN_X86)
  posattn_kernels(posattn_isa_v2 4 kernels_v2 x86-64-v2 -march=x86-64-v2)
  posattn_kernels(posattn_isa_v3 8 kernels_v3 x86-64-v3 -march=x86-64-v3)
  posattn_kernels(posattn_isa_v4 16 kernels_v4 x86-64-v4 -march=x86-64-v4)
else()
  posattn_kernels(posattn_isa_portable 4 kernels_portable ${CMAKE_SYSTEM_PROCESSOR})
endif()
