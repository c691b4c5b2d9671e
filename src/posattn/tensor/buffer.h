// Host memory aligned for the widest vector unit; large blocks ask the system for huge pages, since
// walking down the columns of a large matrix touches a page per row.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace posattn {

void* allocate_aligned(std::size_t bytes);
void free_aligned(void* pointer);

template <class T>
struct AlignedAllocator {
  using value_type = T;

  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}  // NOLINT: the conversion allocators must have

  T* allocate(std::size_t count) {
    if (count > std::numeric_limits<std::size_t>::max() / sizeof(T))
      throw std::bad_array_new_length();
    return static_cast<T*>(allocate_aligned(count * sizeof(T)));
  }
  void deallocate(T* pointer, std::size_t) { free_aligned(pointer); }
  template <class U>
  bool operator==(const AlignedAllocator<U>&) const {
    return true;
  }
};

template <class T>
using Buffer = std::vector<T, AlignedAllocator<T>>;

}  // namespace posattn
