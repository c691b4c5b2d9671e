#include "emulator.h"

#include <cuda_runtime.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <vector>

#include "context.h"

#if defined(__SANITIZE_ADDRESS__)
#define POSATTN_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POSATTN_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(POSATTN_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

constinit thread_local uint3 threadIdx = {0, 0, 0};
constinit thread_local uint3 blockIdx = {0, 0, 0};
constinit thread_local dim3 blockDim;
constinit thread_local dim3 gridDim;

namespace posattn::emulator {
namespace {

constexpr int warp_size = 32;
constexpr size_t stack_bytes = 256 << 10;  // pages that are not touched cost nothing
constexpr size_t guard_bytes = 4096;       // overflow is a fault, not another fiber's data

class Stack {
 public:
  Stack()
      : memory_(mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    mprotect(memory_, guard_bytes, PROT_NONE);
  }
  ~Stack() { munmap(memory_, guard_bytes + stack_bytes); }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  void* bottom() const { return static_cast<char*>(memory_) + guard_bytes; }

 private:
  void* memory_;
};

struct Copy {
  void* to;
  const void* from;
  int size, present;  // bytes
};

enum class State { ready, at_warp, at_block, done };

struct Fiber {
  Stack stack;
  Context context;
  void* fake_stack = nullptr;  // the address sanitizer's
  State state = State::done;
  uint3 index = {0, 0, 0};
  int warp = 0, lane = 0;
  unsigned exchanges = 0;
  std::vector<Copy> open_copies;
  std::deque<std::vector<Copy>> copy_groups;
};

struct Warp {
  int lanes = 0;
  int arrived = 0;
  Collective kind = Collective::none;
  // Two, used in turn: when a lane writes one again, all lanes have met in between.
  alignas(16) unsigned char slots[2][warp_size * largest_exchange];
};

// One block at a time, in one operating-system thread.
class Block {
 public:
  void run(const std::function<void()>& thread, Dimensions size, size_t shared_bytes,
           bool descending);

  static void enter_fiber();
  void arrive_at_block();
  void arrive_at_warp(Collective kind);

  Fiber* current = nullptr;
  std::vector<Warp> warps;
  char* shared = nullptr;

 private:
  void start(int index, Dimensions size);
  void resume(Fiber& fiber);
  bool run_warp(int warp, bool descending);
  void leave_fiber();
  void report_deadlock() const;

  std::vector<std::unique_ptr<Fiber>> fibers_;
  const std::function<void()>* thread_ = nullptr;
  Context scheduler_;
  int threads_ = 0;
  int finished_ = 0;
  int arrived_ = 0;
  bool released_ = false;  // all have met at the barrier: begin again with the first warp
  void* scheduler_fake_stack_ = nullptr;
  const void* scheduler_bottom_ = nullptr;
  size_t scheduler_bytes_ = 0;
};

// A plain pointer, which costs nothing to reach; the block of the running kernel.
constinit thread_local Block* this_block = nullptr;

void Block::start(int index, Dimensions size) {
  if (index == static_cast<int>(fibers_.size())) fibers_.push_back(std::make_unique<Fiber>());
  Fiber& fiber = *fibers_[index];
  fiber.fake_stack = nullptr;
  fiber.state = State::ready;
  fiber.index = {index % size.x, index / size.x % size.y, index / size.x / size.y};
  fiber.warp = index / warp_size;
  fiber.lane = index % warp_size;
  fiber.exchanges = 0;
  fiber.open_copies.clear();
  fiber.copy_groups.clear();
  prepare(fiber.context, fiber.stack.bottom(), stack_bytes, enter_fiber);
}

void Block::run(const std::function<void()>& thread, Dimensions size, size_t shared_bytes,
                bool descending) {
  thread_ = &thread;
  threads_ = static_cast<int>(size.x * size.y * size.z);
  finished_ = arrived_ = 0;
  void* memory = nullptr;  // exactly what was asked for, aligned as promised and no better
  if (shared_bytes > 0 && posix_memalign(&memory, 16, shared_bytes) != 0) throw std::bad_alloc();
  if (memory != nullptr) std::memset(memory, 0xff, shared_bytes);
  shared = static_cast<char*>(memory);
  warps.resize((threads_ + warp_size - 1) / warp_size);
  for (int w = 0; w < static_cast<int>(warps.size()); ++w) {
    warps[w].lanes = std::min(warp_size, threads_ - w * warp_size);
    warps[w].arrived = 0;
  }
  for (int i = 0; i < threads_; ++i) start(i, size);

  while (finished_ < threads_) {
    bool progress = false;
    released_ = false;
    const int count = static_cast<int>(warps.size());
    for (int w = 0; w < count && !released_; ++w) {
      progress |= run_warp(descending ? count - 1 - w : w, descending);
    }
    if (!progress) report_deadlock();
  }
  free(memory);
  shared = nullptr;
}

// Until all lanes have ended or wait for other warps; false if that was so from the start.
bool Block::run_warp(int warp, bool descending) {
  const int first = warp * warp_size, lanes = warps[warp].lanes;
  bool any = false, progress = true;
  while (progress) {
    progress = false;
    for (int i = 0; i < lanes && !released_; ++i) {
      Fiber& fiber = *fibers_[first + (descending ? lanes - 1 - i : i)];
      if (fiber.state != State::ready) continue;
      resume(fiber);
      any = progress = true;
    }
  }
  return any;
}

void Block::resume(Fiber& fiber) {
  current = &fiber;
  threadIdx = fiber.index;
#if defined(POSATTN_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&scheduler_fake_stack_, fiber.stack.bottom(), stack_bytes);
#endif
  switch_context(scheduler_, fiber.context);
#if defined(POSATTN_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(scheduler_fake_stack_, nullptr, nullptr);
#endif
  current = nullptr;
}

void Block::leave_fiber() {
  Fiber& fiber = *current;
#if defined(POSATTN_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(fiber.state == State::done ? nullptr : &fiber.fake_stack,
                                 scheduler_bottom_, scheduler_bytes_);
#endif
  switch_context(fiber.context, scheduler_);
#if defined(POSATTN_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(fiber.fake_stack, &scheduler_bottom_, &scheduler_bytes_);
#endif
}

void Block::enter_fiber() {
  Block& block = *this_block;
#if defined(POSATTN_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(nullptr, &block.scheduler_bottom_, &block.scheduler_bytes_);
#endif
  (*block.thread_)();
  block.current->state = State::done;
  ++block.finished_;
  block.leave_fiber();
  std::abort();  // a finished fiber is not resumed
}

void Block::arrive_at_block() {
  current->state = State::at_block;
  if (++arrived_ == threads_) {
    arrived_ = 0;
    released_ = true;
    for (int i = 0; i < threads_; ++i) fibers_[i]->state = State::ready;
  }
  leave_fiber();
}

void Block::arrive_at_warp(Collective kind) {
  Warp& warp = warps[current->warp];
  if (warp.arrived == 0) warp.kind = kind;
  if (warp.kind != kind) fail("lanes of a warp meet in different collectives");
  current->state = State::at_warp;
  if (++warp.arrived == warp.lanes) {
    warp.arrived = 0;
    const int first = current->warp * warp_size;
    for (int i = 0; i < warp.lanes; ++i) fibers_[first + i]->state = State::ready;
  }
  leave_fiber();
}

void Block::report_deadlock() const {
  int at_warp = 0;
  for (int i = 0; i < threads_; ++i) at_warp += fibers_[i]->state == State::at_warp;
  std::fprintf(stderr,
               "CUDA emulator: block (%u, %u, %u) cannot go on: of %d threads %d wait in "
               "__syncthreads, %d in a warp collective, %d have ended\n",
               blockIdx.x, blockIdx.y, blockIdx.z, threads_, arrived_, at_warp, finished_);
  std::abort();
}

}  // namespace

void run_grid(Dimensions grid, Dimensions block, size_t shared_bytes,
              const std::function<void()>& thread) {
  const int64_t blocks = int64_t{grid.x} * grid.y * grid.z;
#pragma omp parallel for schedule(dynamic, 1) if (blocks > 1)
  for (int64_t b = 0; b < blocks; ++b) {
    gridDim = dim3(grid.x, grid.y, grid.z);
    blockDim = dim3(block.x, block.y, block.z);
    blockIdx = {static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y),
                static_cast<unsigned>(b / grid.x / grid.y)};
    thread_local Block blocks_of_this_thread;
    this_block = &blocks_of_this_thread;
    this_block->run(thread, block, shared_bytes, b % 2 == 1);
  }
}

char* dynamic_shared() { return this_block->shared; }
void meet_block() { this_block->arrive_at_block(); }
void meet_warp(Collective kind) { this_block->arrive_at_warp(kind); }
int lane_index() { return this_block->current->lane; }
int warp_lanes() { return this_block->warps[this_block->current->warp].lanes; }

void* exchange_slots() {
  Fiber& fiber = *this_block->current;
  return this_block->warps[fiber.warp].slots[fiber.exchanges++ % 2];
}

void start_copy(void* shared, const void* global, int size, int present) {
  if (reinterpret_cast<uintptr_t>(shared) % size != 0 ||
      reinterpret_cast<uintptr_t>(global) % size != 0) {
    fail("copy_async needs addresses that are multiples of its size");
  }
  if (present < 0 || present > size) fail("copy_async_part: more bytes than its size");
  std::memset(shared, 0xff, size);
  this_block->current->open_copies.push_back({shared, global, size, present});
}

void commit_copies() {
  Fiber& fiber = *this_block->current;
  fiber.copy_groups.push_back(std::move(fiber.open_copies));
  fiber.open_copies.clear();
}

void wait_copies(int pending) {
  auto& groups = this_block->current->copy_groups;
  while (static_cast<int>(groups.size()) > pending) {
    for (const Copy& copy : groups.front()) {
      std::memset(copy.to, 0, copy.size);
      std::memcpy(copy.to, copy.from, copy.present);
    }
    groups.pop_front();
  }
}

void fail(const char* message) {
  std::fprintf(stderr, "CUDA emulator: block (%u, %u, %u), thread (%u, %u, %u): %s\n", blockIdx.x,
               blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, message);
  std::abort();
}

}  // namespace posattn::emulator
