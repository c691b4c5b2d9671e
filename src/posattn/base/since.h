// Since when files have a field, and what a file without it means: the default that the field came
// with, whatever the default is today.
#pragma once

namespace posattn {

template <class T>
struct Since {
  const char* version;
  T came_with;
};
template <class T>
Since(const char*, T) -> Since<T>;

}  // namespace posattn
