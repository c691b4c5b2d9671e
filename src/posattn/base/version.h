// The source, compiler and flags that this library was built from.
#pragma once

#include <string>

namespace posattn {

struct BuildInfo {
  std::string version, commit, compiler, flags, build_type;
};

const BuildInfo& build_info();

}  // namespace posattn
