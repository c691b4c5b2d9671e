#include "posattn/cli/interrupt.h"

#include <csignal>

namespace posattn {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");

void note_interrupt(int /*signal*/) { interrupted = true; }

void catch_one(int number) {
  struct sigaction previous {};
  if (sigaction(number, nullptr, &previous) == 0 && previous.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = note_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  (void)sigaction(number, &action, nullptr);
}

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) catch_one(number);
  return interrupted;
}

}  // namespace posattn
