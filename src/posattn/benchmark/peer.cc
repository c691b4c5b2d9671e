#include "posattn/benchmark/steps.h"

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include "posattn/base/error.h"

namespace posattn {

namespace fs = std::filesystem;

fs::path this_program() {
#ifdef __APPLE__
  std::string name(4096, '\0');
  auto size = static_cast<uint32_t>(name.size());
  if (_NSGetExecutablePath(name.data(), &size) != 0) return {};
  return fs::canonical(name.c_str());
#else
  return fs::read_symlink("/proc/self/exe");
#endif
}

fs::path find_peer_script() {
  const fs::path program = this_program();
  // build/PRESET/posattn in a source tree; bin/posattn of an installation.
  const fs::path places[] = {
      program.parent_path() / "../../bench/peer_torch.py",
      program.parent_path() / "../share/posattn/bench/peer_torch.py",
  };
  for (const fs::path& place : places) {
    if (fs::exists(place)) return fs::canonical(place);
  }
  throw Error(ExitCode::data, "bench/peer_torch.py not found near " + program.string(),
              "a build folder inside the source tree, or an installation",
              "run the binary in build/release of a checkout");
}

}  // namespace posattn
