// posattn version
#include "posattn/base/version.h"

#include "posattn/cli/commands.h"
#include "posattn/results/manifest.h"

namespace posattn {
namespace {

ExitCode show_version(const JsonFlag& flags) {
  const BuildInfo& build = build_info();
  write_output(flags.json ? json_text(build_json())
                          : fmt::format("posattn {} (commit {}, {}, {})\n", build.version,
                                        build.commit, build.compiler, build.build_type));
  return ExitCode::done;
}

const Command registered_version({.name = "version",
                                  .group = Group::machine,
                                  .summary = "Print the version, commit and compiler",
                                  .examples = {"posattn version", "posattn version --json"}},
                                 add_json_flag_alone, show_version);

}  // namespace
}  // namespace posattn
