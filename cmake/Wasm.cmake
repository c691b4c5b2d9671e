# The library as one WebAssembly module, for pages (cmake --preset wasm): the same sources, without
# what needs files, processes, threads or a processor of its own. The no_ folders stand in where
# others call it.
foreach(room IN ITEMS base tensor text kernels tasks model evaluation programs training playground)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/posattn/${room}/*.cc)
  list(APPEND POSATTN_SOURCES ${sources})
endforeach()
foreach(file IN ITEMS bounds/bias_scaling results/settings_difference)
  list(APPEND POSATTN_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/src/posattn/${file}.cc)
endforeach()
list(FILTER POSATTN_SOURCES EXCLUDE REGEX "(_test|_fuzz)\\.cc$")
list(FILTER POSATTN_SOURCES EXCLUDE REGEX
  "/base/(command|file|memory|toml)\\.cc$|/tensor/buffer\\.cc$|/text/word_pattern\\.cc$")
list(FILTER POSATTN_SOURCES EXCLUDE REGEX
  "/kernels/(operations|cpu/(blas|dispatch|isa_kernels))\\.cc$")
list(FILTER POSATTN_SOURCES EXCLUDE REGEX "/evaluation/(csv|npy|samples_io|table)\\.cc$")
list(FILTER POSATTN_SOURCES EXCLUDE REGEX
  "/training/(checkpoint|device_training|fleet|fleet_folders|ordered_workers|recording|run_config_text)\\.cc$|/training/no_cuda/")

# Headers alone, so that nothing of the host's C library is found beside them.
set(POSATTN_WASM_HEADERS ${CMAKE_CURRENT_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${POSATTN_WASM_HEADERS})
foreach(header IN ITEMS fmt/format.h nlohmann/json.hpp)
  find_path(folder ${header} REQUIRED NO_CACHE PATHS /usr/include /usr/local/include NO_CMAKE_FIND_ROOT_PATH)
  get_filename_component(name ${header} DIRECTORY)
  file(CREATE_LINK ${folder}/${name} ${POSATTN_WASM_HEADERS}/${name} SYMBOLIC)
  unset(folder)
endforeach()

# Small before fast: the module is part of a page, and what computes is posattn_isa.
set(CMAKE_CXX_FLAGS_RELEASE "-Os")
add_compile_options(-fwasm-exceptions -msimd128 -fno-math-errno -Wno-unknown-pragmas
  -Wno-deprecated)  # of the target's name
# Without locales, streams and numbers of 128 bits, which nothing here prints: a third of a megabyte.
add_compile_definitions(FMT_HEADER_ONLY FMT_STATIC_THOUSANDS_SEPARATOR=',' FMT_USE_LONG_DOUBLE=0
  JSON_NO_IO)
include_directories(SYSTEM ${POSATTN_WASM_HEADERS})

add_library(posattn_core OBJECT ${POSATTN_SOURCES})
target_include_directories(posattn_core PUBLIC src)
include(cmake/Version.cmake)
include(cmake/Embed.cmake)
include(cmake/CoreSources.cmake)

add_library(posattn_isa OBJECT src/posattn/kernels/cpu/isa_kernels.cc)
target_include_directories(posattn_isa PRIVATE src)
target_compile_options(posattn_isa PRIVATE -O3 -fno-trapping-math -ffp-contract=off -Wno-psabi)
target_compile_definitions(posattn_isa PRIVATE POSATTN_LANES=4 POSATTN_ISA=kernels_portable
  POSATTN_ISA_NAME="wasm-simd128")

# The module has the functions of playground.h; what they do not need is left out. A stack of 4 MiB:
# programs nest.
file(STRINGS src/posattn/playground/playground.h declarations 
  REGEX "^[a-z].*play_[a-z_]+\\(")
string(REGEX MATCHALL "play_[a-z_]+" names "${declarations}")
list(REMOVE_DUPLICATES names)
list(TRANSFORM names PREPEND "LINKER:--export=" OUTPUT_VARIABLE exports)
add_executable(posattn_wasm wasm/exceptions.cc wasm/allocation.cc $<TARGET_OBJECTS:posattn_core>
  $<TARGET_OBJECTS:posattn_isa>)
set_target_properties(posattn_wasm PROPERTIES OUTPUT_NAME posattn SUFFIX .wasm)
set_target_properties(posattn_wasm PROPERTIES LINK_DEPENDS
  ${CMAKE_CURRENT_SOURCE_DIR}/src/posattn/playground/playground.h)
target_link_options(posattn_wasm PRIVATE -fwasm-exceptions -mexec-model=reactor --no-wasm-opt
  -Wno-deprecated LINKER:--gc-sections,--strip-all,-z,stack-size=4194304 ${exports})
