// Memory without huge pages.
#include "posattn/tensor/buffer.h"

#include <cstdlib>

namespace posattn {

void* allocate_aligned(std::size_t bytes) {
  constexpr std::size_t line = 64;
  if (bytes > std::numeric_limits<std::size_t>::max() - line) throw std::bad_alloc();
  void* pointer = std::aligned_alloc(line, (bytes + line - 1) / line * line);
  if (pointer == nullptr) throw std::bad_alloc();
  return pointer;
}

void free_aligned(void* pointer) { std::free(pointer); }

}  // namespace posattn
