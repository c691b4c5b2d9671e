# The CUDA engine. posattn_cuda_objects is just the .cu files: quick to build when only they matter.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(POSATTN_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(NOT POSATTN_NVCC)
    message(FATAL_ERROR "POSATTN_CUDA is ON, but no CUDA toolkit was found: nvcc is neither in PATH nor "
      "in /usr/local/cuda/bin. Install it, name it with -DCMAKE_CUDA_COMPILER=/path/to/nvcc, or build "
      "without the CUDA engine (the release preset).")
  endif()
  set(CMAKE_CUDA_COMPILER ${POSATTN_NVCC})
endif()
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(POSATTN_CHOOSES_CARDS ON)
  set(CMAKE_CUDA_ARCHITECTURES 90)  # while CMake tries the compiler
endif()
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
set(CMAKE_CUDA_FLAGS_RELEASE "-O3")
enable_language(CUDA)
# The cards at hand, because each kind takes as long again to compile. Where there is none, PTX for the
# oldest that is known (kernels/cuda/device_limits.h): the driver makes code of it for any card, once.
if(POSATTN_CHOOSES_CARDS)
  if(POSATTN_ALL_GPUS)
    set(CMAKE_CUDA_ARCHITECTURES 80-real 86-real 89-real 90-real 100-real 90-virtual)
  elseif(CMAKE_CUDA_ARCHITECTURES_NATIVE)
    set(CMAKE_CUDA_ARCHITECTURES ${CMAKE_CUDA_ARCHITECTURES_NATIVE})
  else()
    set(CMAKE_CUDA_ARCHITECTURES 90-real 80-virtual)
  endif()
  message(STATUS "CUDA code for: ${CMAKE_CUDA_ARCHITECTURES}")
endif()
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # unknown to CMake 3.25
find_package(CUDAToolkit 12.0 REQUIRED)

function(posattn_cuda_library name)
  add_library(${name} OBJECT ${ARGN})
  target_include_directories(${name} PRIVATE src)
  target_compile_options(${name} PRIVATE --expt-relaxed-constexpr
    $<$<BOOL:${CMAKE_COMPILE_WARNING_AS_ERROR}>:--Werror=all-warnings>
    -Xcompiler=-Wall,-Wextra,-Wshadow$<$<BOOL:${CMAKE_COMPILE_WARNING_AS_ERROR}>:,-Werror>)
  target_link_libraries(${name} PRIVATE ${POSATTN_LIBRARIES} CUDA::cudart_static)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CUDA_STANDARD 20
    CUDA_EXTENSIONS OFF)
endfunction()
posattn_cuda_library(posattn_cuda_objects ${POSATTN_CUDA_SOURCES})

target_sources(posattn PRIVATE $<TARGET_OBJECTS:posattn_cuda_objects>)
target_link_libraries(posattn PRIVATE CUDA::cudart_static)
