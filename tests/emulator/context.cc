#include "context.h"

#include <cstdint>

#if defined(__x86_64__)

// void posattn_switch_stack(void** from, void* to): the registers that a call must keep go on the
// old stack, and come from the new one. (swapcontext would do, but asks the kernel each time.)
asm(R"(
.text
.p2align 4
.type posattn_switch_stack, @function
posattn_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size posattn_switch_stack, .-posattn_switch_stack
)");
extern "C" void posattn_switch_stack(void** from, void* to);

namespace posattn::emulator {

void prepare(Context& context, void* stack, size_t bytes, void (*entry)()) {
  // A function expects its stack pointer 8 below a multiple of 16, at its return address.
  auto** top = reinterpret_cast<void**>(static_cast<char*>(stack) + bytes / 16 * 16);
  *--top = nullptr;                              // entry's return address: it does not return
  *--top = reinterpret_cast<void*>(entry);       // where the first switch returns to
  for (int i = 0; i < 6; ++i) *--top = nullptr;  // the six registers
  context.stack_pointer = top;
}

void switch_context(Context& from, Context& to) {
  posattn_switch_stack(&from.stack_pointer, to.stack_pointer);
}

}  // namespace posattn::emulator

#else

namespace posattn::emulator {

void prepare(Context& context, void* stack, size_t bytes, void (*entry)()) {
  getcontext(&context.state);
  context.state.uc_stack.ss_sp = stack;
  context.state.uc_stack.ss_size = bytes;
  context.state.uc_link = nullptr;
  makecontext(&context.state, entry, 0);
}

void switch_context(Context& from, Context& to) { swapcontext(&from.state, &to.state); }

}  // namespace posattn::emulator

#endif
