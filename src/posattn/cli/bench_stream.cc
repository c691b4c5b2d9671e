
#include <nlohmann/json.hpp>

#include "posattn/benchmark/stream_inference.h"
#include "posattn/cli/bench_device.h"
#include "posattn/cli/terminal.h"

namespace posattn {

Json measure_streams(const std::vector<int>& windows, double seconds) {
  constexpr int landmarks = 8, most_anew = 4096;
  Json rows = Json::array();
  for (const StreamForm& form : stream_forms()) {
    for (const int window : windows) {
      if (form.anew && window > most_anew) continue;
      const StreamCost cost = measure_stream(form, window, landmarks, seconds);
      rows.push_back({{"form", form.name},
                      {"window", window},
                      {"ns_per_node", four_digits(cost.node_seconds * 1e9)},
                      {"multiply_adds", four_digits(cost.multiply_adds)},
                      {"attention_multiply_adds", four_digits(cost.attention_multiply_adds)}});
    }
  }
  return rows;
}

}  // namespace posattn
