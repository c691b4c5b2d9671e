// Throwing and catching in WebAssembly: the part of the C++ runtime that the toolchain's own
// library lacks, for it is built without exceptions. What is caught where stands in tables of the
// compiler
// ("Itanium C++ ABI: Exception Handling"); a landing pad asks _Unwind_CallPersonality which of its
// handlers fits, and the library's type descriptions answer that. One thread.
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <typeinfo>

// The tag of every C++ exception: its one number is the address of a Header.
asm(".globl __cpp_exception\n.tagtype __cpp_exception i32\n__cpp_exception:\n");

namespace __cxxabiv1 {
// The library's name and order of virtual functions: every type description is one.
class __shim_type_info : public std::type_info {
 public:
  virtual void noop1() const;
  virtual void noop2() const;
  virtual bool can_catch(const __shim_type_info* thrown, void*& adjusted) const = 0;
};
}  // namespace __cxxabiv1

namespace {

// Stands before the thrown object.
struct alignas(16) Header {
  Header* primary;  // the one before the object; another for what an exception_ptr rethrows
  int references;   // of the primary: throws under way or caught, and exception_ptrs
  int handlers;     // that are at work on it; negative while it is thrown again
  Header* outer;    // what was caught before and is not yet done with
  void* adjusted;   // the object as the type that the handler named
  const __cxxabiv1::__shim_type_info* type;
  void* (*destroy)(void*);  // here a destructor returns its argument

  void* object() { return primary + 1; }
};

Header* caught = nullptr;  // the innermost
unsigned uncaught = 0;

Header* header_of(void* object) { return static_cast<Header*>(object) - 1; }

[[noreturn]] void raise(Header* header) {
  ++uncaught;
  __builtin_wasm_throw(0, header);
}

void release_primary(Header* primary) {
  if (--primary->references > 0) return;
  if (primary->destroy != nullptr) primary->destroy(primary->object());
  std::free(primary);
}

void release(Header* header) {
  Header* primary = header->primary;
  if (header != primary) std::free(header);
  release_primary(primary);
}

uintptr_t read_unsigned(const uint8_t*& at) {
  uintptr_t value = 0;
  for (int shift = 0;; shift += 7) {
    const uint8_t byte = *at++;
    value |= static_cast<uintptr_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
}

intptr_t read_signed(const uint8_t*& at) {
  uintptr_t value = 0;
  for (int shift = 0;;) {
    const uint8_t byte = *at++;
    value |= static_cast<uintptr_t>(byte & 0x7f) << shift;
    shift += 7;
    if ((byte & 0x80) != 0) continue;
    if ((byte & 0x40) != 0 && shift < 32) value |= ~uintptr_t{0} << shift;
    return static_cast<intptr_t>(value);
  }
}

// The number of the first handler of landing pad `index` that takes the exception, 0 for none.
uintptr_t selector(const uint8_t* table, uintptr_t index, Header* header) {
  constexpr uint8_t omitted = 0xff, absolute = 0;
  if (*table++ != omitted) std::terminate();  // where landing pads start: WebAssembly has no places
  const uint8_t type_encoding = *table++;
  const uint8_t* types = nullptr;
  if (type_encoding != omitted) {
    if (type_encoding != absolute) std::terminate();
    const uintptr_t offset = read_unsigned(table);
    types = table + offset;
  }
  ++table;  // how the next table is encoded: always as below
  const uintptr_t length = read_unsigned(table);
  const uint8_t* const actions = table + length;
  uintptr_t action = 0;
  for (uintptr_t i = 0; i <= index; ++i) {
    read_unsigned(table);
    action = read_unsigned(table);
  }
  if (action == 0) return 0;  // it only cleans up
  const uint8_t* at = actions + action - 1;
  for (;;) {
    const intptr_t number = read_signed(at);
    const uint8_t* const here = at;
    const intptr_t next = read_signed(at);
    if (number > 0) {
      const auto* type =
          reinterpret_cast<const __cxxabiv1::__shim_type_info* const*>(types)[-number];
      void* adjusted = header->object();
      if (type == nullptr || type->can_catch(header->type, adjusted)) {  // nullptr: catch (...)
        header->adjusted = adjusted;
        return static_cast<uintptr_t>(number);
      }
    }
    if (next == 0) return 0;
    at = here + next;
  }
}

}  // namespace

extern "C" {

// What compiled code and the library call, with the names and types that they expect.
struct LandingPadContext {
  uintptr_t index;
  const uint8_t* table;
  uintptr_t selector;
};
thread_local LandingPadContext __wasm_lpad_context;

int _Unwind_CallPersonality(void* exception) {
  LandingPadContext& context = __wasm_lpad_context;
  context.selector = selector(context.table, context.index, static_cast<Header*>(exception));
  return 0;
}

void* __cxa_allocate_exception(size_t bytes) noexcept {
  void* memory = std::calloc(1, sizeof(Header) + bytes);
  if (memory == nullptr) std::terminate();
  return static_cast<Header*>(memory) + 1;
}

void __cxa_free_exception(void* object) noexcept { std::free(header_of(object)); }

[[noreturn]] void __cxa_throw(void* object, std::type_info* type, void* (*destroy)(void*)) {
  Header* header = header_of(object);
  header->primary = header;
  header->references = 1;
  header->type = static_cast<const __cxxabiv1::__shim_type_info*>(type);
  header->destroy = destroy;
  raise(header);
}

void* __cxa_get_exception_ptr(void* exception) noexcept {
  return static_cast<Header*>(exception)->adjusted;
}

void* __cxa_begin_catch(void* exception) noexcept {
  auto* header = static_cast<Header*>(exception);
  header->handlers = std::abs(header->handlers) + 1;
  if (header != caught) {
    header->outer = caught;
    caught = header;
  }
  --uncaught;
  return header->adjusted;
}

void __cxa_end_catch() {
  Header* header = caught;
  if (header == nullptr) return;
  if (header->handlers < 0) {  // on its way again: whoever catches it next releases it
    if (++header->handlers == 0) caught = header->outer;
  } else if (--header->handlers == 0) {
    caught = header->outer;
    release(header);
  }
}

[[noreturn]] void __cxa_rethrow() {
  if (caught == nullptr) std::terminate();
  caught->handlers = -caught->handlers;
  raise(caught);
}

// For std::exception_ptr, which holds the object's address.
void __cxa_increment_exception_refcount(void* object) noexcept {
  if (object != nullptr) ++header_of(object)->references;
}

void __cxa_decrement_exception_refcount(void* object) noexcept {
  if (object != nullptr) release_primary(header_of(object));
}

void* __cxa_current_primary_exception() noexcept {
  if (caught == nullptr) return nullptr;
  ++caught->primary->references;
  return caught->object();
}

void __cxa_rethrow_primary_exception(void* object) {
  if (object == nullptr) return;
  Header* primary = header_of(object);
  auto* again = header_of(__cxa_allocate_exception(0));
  again->primary = primary;
  again->type = primary->type;
  ++primary->references;
  raise(again);
}

unsigned __cxa_uncaught_exceptions() noexcept { return uncaught; }
bool __cxa_uncaught_exception() noexcept { return uncaught != 0; }

}  // extern "C"
