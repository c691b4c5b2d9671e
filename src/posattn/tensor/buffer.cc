#include "posattn/tensor/buffer.h"

#include <sys/mman.h>

#include <cstdlib>

namespace posattn {

void* allocate_aligned(std::size_t bytes) {
  constexpr std::size_t line = 64, huge_page = std::size_t{2} << 20;
  const bool large = bytes >= 2 * huge_page;
  const std::size_t alignment = large ? huge_page : line;
  void* pointer = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (pointer == nullptr) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  if (large) madvise(pointer, bytes, MADV_HUGEPAGE);  // a wish: without it only speed is lost
#endif
  return pointer;
}

void free_aligned(void* pointer) { std::free(pointer); }

}  // namespace posattn
