// Any bytes must either be refused with an Error or give numbers.
#include <cstddef>
#include <cstdint>

#include "posattn/base/error.h"
#include "posattn/bounds/certificate/certificate_rows.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    posattn::bounds::certified_risks({reinterpret_cast<const char*>(data), size}, "input");
  } catch (const posattn::Error&) {
  }
  return 0;
}
