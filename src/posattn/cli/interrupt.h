// Ctrl-C as a wish: long work looks at the flag, saves its state and returns.
#pragma once

#include <atomic>

namespace posattn {

// From now on the first SIGINT, SIGTERM or SIGHUP sets the flag; the second ends the process at
// once. A signal that was ignored (nohup) stays ignored.
const std::atomic<bool>& catch_interrupts();

}  // namespace posattn
