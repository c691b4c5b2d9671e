#include "posattn/base/memory.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "posattn/base/error.h"

namespace posattn {

uint64_t memory_limit() {
  uint64_t limit = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                   static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  rlimit address_space = {};
  if (::getrlimit(RLIMIT_AS, &address_space) == 0 && address_space.rlim_cur != RLIM_INFINITY) {
    limit = std::min<uint64_t>(limit, address_space.rlim_cur);
  }
  uint64_t container = 0;  // "max" where it has no limit
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> container) limit = std::min(limit, container);
  return limit;
}

void require_memory(uint64_t bytes, const std::string& what, const std::string& hint) {
  constexpr double giga = 1e9;
  constexpr uint64_t small = uint64_t{1} << 24;  // not worth asking
  if (bytes <= small) return;
  const uint64_t limit = memory_limit();
  if (bytes <= limit) return;
  throw Error(
      ExitCode::failed,
      fmt::format("{} needs {:.1f} GB of memory", what, static_cast<double>(bytes) / giga),
      fmt::format("at most the {:.1f} GB that there are", static_cast<double>(limit) / giga), hint);
}

}  // namespace posattn
