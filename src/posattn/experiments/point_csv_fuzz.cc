// Any bytes must either be refused with an Error or give points that survive writing and reading.
#include <cstddef>
#include <cstdlib>

#include "posattn/base/error.h"
#include "posattn/experiments/curves.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<posattn::PointSummary> points;
  try {
    points = posattn::points_from_csv(bytes, "input");
  } catch (const posattn::Error&) {
    return 0;
  }
  const std::string csv = posattn::to_csv(points);
  if (posattn::to_csv(posattn::points_from_csv(csv, "csv")) != csv) std::abort();
  return 0;
}
