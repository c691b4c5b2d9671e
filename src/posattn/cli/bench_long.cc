
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "posattn/benchmark/long_inference.h"
#include "posattn/cli/bench_device.h"
#include "posattn/cli/terminal.h"
#include "posattn/report/plot/figure.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {
namespace {

constexpr double most_matrix_bytes = 4e9;
// Factors are found once, but every number of the matrices is looked at, and features need
// thousands of transforms: minutes beyond this.
constexpr int most_slow = 1 << 14;

bool left_out(const std::string& positions, bool as_written, int length) {
  return as_written ? matrix_bytes(length) > most_matrix_bytes
                    : positions != "relative" && length > most_slow;
}

}  // namespace

Json measure_long(const std::vector<int>& lengths, int threads, double seconds) {
  Json rows = Json::array();
  for (const char* positions : {"relative", "sinusoidal", "kernel"}) {
    for (const bool as_written : {true, false}) {
      for (const int length : lengths) {
        if (left_out(positions, as_written, length)) continue;
        const LongInference time = measure_long_inference({.positions = positions,
                                                           .as_written = as_written,
                                                           .length = length,
                                                           .threads = threads,
                                                           .seconds = seconds});
        rows.push_back({{"positions", positions},
                        {"form", as_written ? "matrices" : "chosen"},
                        {"length", length},
                        {"ms_per_sample", four_digits(time.sample_seconds * 1e3)},
                        {"ms_once", four_digits(time.prepare_seconds * 1e3)}});
      }
    }
  }
  return rows;
}

std::string long_figure(const Json& rows) {
  FigureRequest request{.name = "long",
                        .title = "Time of inference against the length of the input",
                        .x_label = "length n",
                        .y_label = "ms a sample, four layers",
                        .markers = true,
                        .lines = {},
                        .logarithmic_x = true};
  for (const Json& row : rows) {
    const std::string label = fmt::format("{}, {}", row["positions"].get<std::string>(),
                                          row["form"] == "matrices" ? "by matrices" : "as chosen");
    if (request.lines.empty() || request.lines.back().label != label) {
      const int style = style_of(
          row["positions"] == "sinusoidal" ? "positional" : row["positions"].get<std::string>(),
          row["form"] == "matrices" ? Shade::pale : Shade::plain);
      request.lines.push_back({.label = label, .style = style, .points = {}});
    }
    const double time = row["ms_per_sample"];
    request.lines.back().points.push_back({row["length"], time, time, time});
  }
  return draw_figure(request);
}

}  // namespace posattn
