#include "unlocked.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace posattn::python {
namespace {

std::atomic<bool> ending = false;
std::thread::id ending_thread;  // written before `ending` is set
std::atomic<int> at_work = 0;

// Other threads do not survive a fork.
[[maybe_unused]] const int after_forks = pthread_atfork(nullptr, nullptr, [] { at_work = 0; });

// With the interpreter's lock. A thread that raises SystemExit ends without a word. The thread that
// ends Python may go on: functions of atexit that come later may save a model.
void check_ending() {
  if (!ending || std::this_thread::get_id() == ending_thread) return;
  PyErr_SetNone(PyExc_SystemExit);
  throw py::error_already_set();
}

}  // namespace

Unlocked::Counted::Counted() {
  check_ending();
  ++at_work;
}

Unlocked::Counted::~Counted() { --at_work; }

void check_signals() {
  const py::gil_scoped_acquire locked;
  check_ending();
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

void add_ending(py::module_& module) {
  // Before Python ends, after flags that stop what has one were set.
  module.def("end", [] {
    ending_thread = std::this_thread::get_id();
    ending = true;
    const py::gil_scoped_release unlocked;
    while (at_work > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
}

}  // namespace posattn::python
