// What Python sets to end a long call, which then saves what it has.
#pragma once

#include <atomic>

namespace posattn::python {

struct StopFlag {
  std::atomic<bool> is_set = false;
};

}  // namespace posattn::python
