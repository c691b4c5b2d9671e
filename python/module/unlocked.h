// Long work without the interpreter's lock, which ends where Python does.
#pragma once

#include "module.h"
#include "posattn/base/watch.h"

namespace posattn::python {

// The interpreter's lock is given up. When Python ends, this work is waited for: a thread that
// asked for the lock later would be torn from the middle of C++. From then on it raises
// SystemExit.
class Unlocked {
 public:
  Unlocked() = default;
  ~Unlocked() = default;
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  struct Counted {
    Counted();
    ~Counted();
  };
  Counted counted_;
  py::gil_scoped_release released_;
};

// What a signal's handler raises is then raised by the call, within a tenth of a second.
void check_signals();

// The same for work that has no flag to stop it.
class Interruptible {
  Unlocked unlocked_;
  Watch watch_{&check_signals};
};

}  // namespace posattn::python
