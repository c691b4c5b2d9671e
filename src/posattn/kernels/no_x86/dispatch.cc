// Kernels for a machine with one instruction set, which the build chose.
#include "posattn/kernels/cpu/tile_kernels.h"

namespace posattn {

extern const TileKernels kernels_portable;

const TileKernels& tile_kernels() { return kernels_portable; }

std::string_view instruction_set() { return kernels_portable.instruction_set; }

const TileKernels* const* available_tile_kernels(int& count) {
  static const TileKernels* const list[] = {&kernels_portable};
  count = 1;
  return list;
}

}  // namespace posattn
