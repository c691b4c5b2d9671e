// Any bytes must either be refused with an Error or give a table that survives writing and reading.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "posattn/base/error.h"
#include "posattn/evaluation/csv.h"
#include "posattn/evaluation/npy.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

template <class Parse>
void check(Parse parse, std::string_view bytes) {
  posattn::Table table;
  try {
    table = parse(bytes, "input", 0);
  } catch (const posattn::Error&) {
    return;
  }
  require(table.rows > 0 && table.columns > 0);
  require(static_cast<int64_t>(table.values.size()) == table.rows * table.columns);
  require(posattn::parse_csv(posattn::to_csv(table), "csv").values == table.values);
  require(posattn::parse_npy(posattn::to_npy(table), "npy").values == table.values);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check(posattn::parse_csv, bytes);
  check(posattn::parse_npy, bytes);
  return 0;
}
