// What this library was built from and with.
#pragma once

#include <string>

namespace posattn {

struct BuildInfo {
  std::string version, commit, compiler, flags, build_type;
};

const BuildInfo& build_info();

}  // namespace posattn
