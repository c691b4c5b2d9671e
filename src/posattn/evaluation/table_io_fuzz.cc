// Any bytes must either be refused with an Error or give a table that survives writing and reading.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "posattn/base/error.h"
#include "posattn/evaluation/table.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

template <class Parse>
void check(Parse parse, std::string_view bytes, const posattn::RowPattern& pattern) {
  posattn::Table table;
  try {
    table = parse(bytes, "input", 0, pattern);
  } catch (const posattn::Error&) {
    return;
  }
  require(table.rows > 0 && table.columns > 0);
  require(static_cast<int64_t>(table.values.size() + table.whole.size()) ==
          table.rows * table.columns);
  const auto survives = [&](const posattn::Table& again) {
    return again.values == table.values && again.whole == table.whole;
  };
  require(survives(posattn::parse_csv(posattn::to_csv(table), "csv", 0, pattern)));
  if (pattern.whole > 0 && pattern.real > 0) return;  // no array has both
  require(survives(posattn::parse_npy(posattn::to_npy(table), "npy", 0, pattern)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const posattn::RowPattern& pattern :
       {posattn::RowPattern{}, posattn::RowPattern{.whole = 1, .real = 0},
        posattn::RowPattern{.whole = 1, .real = 2}}) {
    check(posattn::parse_csv, bytes, pattern);
    check(posattn::parse_npy, bytes, pattern);
  }
  return 0;
}
