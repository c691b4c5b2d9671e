#include <cstdlib>
#include <cstring>

#include "posattn/base/error.h"
#include "posattn/kernels/cpu/tile_kernels.h"

namespace posattn {

extern const TileKernels kernels_v2, kernels_v3, kernels_v4;

namespace {

struct Available {
  const TileKernels* list[3] = {};
  int count = 0;

  Available() {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("sse4.2")) {
      throw Error(ExitCode::device, "this processor lacks SSE4.2", "x86-64-v2 or newer");
    }
    list[count++] = &kernels_v2;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      list[count++] = &kernels_v3;
      if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
          __builtin_cpu_supports("avx512vl")) {
        list[count++] = &kernels_v4;
      }
    }
  }
};

const Available& available() {
  static const Available result;
  return result;
}

const TileKernels& choose() {
  const Available& all = available();
  const char* wanted = std::getenv("POSATTN_ISA");
  if (!wanted) return *all.list[all.count - 1];
  std::string names;
  for (int i = 0; i < all.count; ++i) {
    if (std::strcmp(all.list[i]->instruction_set, wanted) == 0) return *all.list[i];
    names += (i ? ", " : "") + std::string(all.list[i]->instruction_set);
  }
  throw Error(ExitCode::usage,
              "POSATTN_ISA asks for '" + std::string(wanted) + "', which this processor lacks",
              "one of: " + names);
}

}  // namespace

const TileKernels& tile_kernels() {
  static const TileKernels& chosen = choose();
  return chosen;
}

std::string_view instruction_set() { return tile_kernels().instruction_set; }

const TileKernels* const* available_tile_kernels(int& count) {
  count = available().count;
  return available().list;
}

}  // namespace posattn
