// libFuzzer entry for the language: any text gives a program or an Error, never a crash or a hang.
// The first byte is the length n. programs/*.par are good seeds.
// Built with -DPOSATTN_FUZZ=ON (cmake/Fuzz.cmake).

#include "posattn/base/error.h"
#include "posattn/programs/language/language.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  posattn::TextOptions options;
  options.limits.work = 1 << 18;
  options.limits.processors = 64;
  try {
    const posattn::StaticProgram program =
        posattn::compile_text(text, "fuzz.par", 1 + data[0] % 9, options);
    // What was accepted must run.
    posattn::check(program);
    const std::vector<double> input(program.processors * program.inputs.size(), 1.0);
    posattn::run_static<double>(program, input, 1);
  } catch (const posattn::Error&) {
  }
  return 0;
}
