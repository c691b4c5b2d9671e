// Host memory aligned for the widest vector unit.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace posattn {

template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{64};

  AlignedAllocator() = default;
  template <class U>
  AlignedAllocator(const AlignedAllocator<U>&) {}  // NOLINT: the conversion allocators must have

  T* allocate(std::size_t count) {
    return static_cast<T*>(::operator new(count * sizeof(T), alignment));
  }
  void deallocate(T* pointer, std::size_t) { ::operator delete(pointer, alignment); }
  template <class U>
  bool operator==(const AlignedAllocator<U>&) const {
    return true;
  }
};

template <class T>
using Buffer = std::vector<T, AlignedAllocator<T>>;

}  // namespace posattn
