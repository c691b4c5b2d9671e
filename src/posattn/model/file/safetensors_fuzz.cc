// libFuzzer entry for the safetensors reader: any bytes give a file or an Error, never a crash.
//   clang++ -std=c++20 -g -O1 -fsanitize=fuzzer,address,undefined -Isrc \
//     src/posattn/model/file/safetensors_fuzz.cc src/posattn/model/file/safetensors.cc \
//     src/posattn/base/json_fields.cc src/posattn/base/error.cc -lfmt
#include <cstdlib>

#include "posattn/base/error.h"
#include "posattn/model/file/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  try {
    const posattn::SafetensorsFile file = posattn::parse_safetensors(bytes);
    // What was accepted must survive a round trip.
    const auto written = posattn::write_safetensors(file.metadata, file.tensors);
    const posattn::SafetensorsFile again = posattn::parse_safetensors(written);
    if (again.tensors.size() != file.tensors.size()) std::abort();
  } catch (const posattn::Error&) {
  }
  return 0;
}
