// Any bytes must either be refused with an Error or give one sample per line, with tokens of the
// model.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "posattn/base/error.h"
#include "posattn/evaluation/samples_io.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

posattn::Model word_model(bool variable_length) {
  posattn::ModelSpec spec;
  spec.real_nodes = 4;
  spec.data_columns = 0;
  spec.vocabulary = 16;
  spec = posattn::resolve(spec);
  return {spec,
          posattn::Parameters<float>(spec),
          {.task = "k-hop",
           .length = 4,
           .variable_length = variable_length,
           .range = 2,
           .integers = false,
           .notes = {}}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const bool variable_length : {false, true}) {
    try {
      const posattn::ReadSamples samples =
          posattn::parse_samples(bytes, "words.txt", word_model(variable_length));
      const posattn::Table& table = samples.table;
      require(table.rows > 0 && samples.lines.size() == static_cast<size_t>(table.rows));
      require(table.whole.size() == static_cast<size_t>(table.rows * table.columns));
      require(
          std::ranges::all_of(table.whole, [](int32_t token) { return token >= 0 && token < 16; }));
    } catch (const posattn::Error&) {
      continue;
    }
  }
  return 0;
}
