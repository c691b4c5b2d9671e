// A second flow of control on a stack of its own, and the switch to it and back.
#pragma once

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace posattn::emulator {

struct Context {
#if defined(__x86_64__)
  void* stack_pointer = nullptr;
#else
  ucontext_t state = {};
#endif
};

// The next switch to `context` calls `entry`, which must never return.
void prepare(Context& context, void* stack, size_t bytes, void (*entry)());

// Stores where we are in `from` and goes on where `to` was stored.
void switch_context(Context& from, Context& to);

}  // namespace posattn::emulator
