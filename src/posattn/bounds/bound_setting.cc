#include "posattn/bounds/bound_setting.h"

#include <fmt/format.h>

#include <cmath>

#include "posattn/base/error.h"

namespace posattn::bounds {

void check(const BoundSetting& setting) {
  const auto refuse = [](const std::string& what, const std::string& expected) {
    throw Error(ExitCode::usage, what, expected);
  };
  const auto positive = [](double x) { return x > 0 && std::isfinite(x); };
  if (!(setting.samples >= 1)) {
    refuse(fmt::format("--samples {:.0f}", setting.samples),
           "1 or more: the size of a training set");
  }
  if (!positive(setting.range)) {
    refuse(fmt::format("--range {}", setting.range), "a number above 0: inputs lie in [-R, R]");
  }
  if (!positive(setting.clip) || !positive(setting.clip * setting.clip)) {
    refuse(fmt::format("--clip {}", setting.clip),
           "a number above 0, as its square: squared errors count up to that");
  }
  if (!(setting.delta > 0 && setting.delta < 1)) {
    refuse(fmt::format("--delta {}", setting.delta), "a probability between 0 and 1");
  }
}

}  // namespace posattn::bounds
