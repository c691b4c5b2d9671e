// For the tests: a small report with two architectures and three seeds each, by formula.
#pragma once

#include <cmath>
#include <string>

#include "posattn/report/page/report_input.h"

namespace posattn {

inline ReportInput sample_report() {
  ReportInput input{.title = "cumulative-sum, length 8",
                    .task = "cumulative-sum",
                    .length = 8,
                    .range = 2,
                    .runs = {},
                    .commands = {"posattn train --task cumulative-sum --seeds 0..2"}};
  for (const std::string architecture : {"positional", "standard"}) {
    const bool positional = architecture == "positional";
    for (int seed = 0; seed < 3; ++seed) {
      RunReport run;
      run.architecture = architecture;
      run.seed = seed;
      run.status = "done";
      run.seconds = 12.5 + seed;
      run.manifest = "{\n  \"seed\": " + std::to_string(seed) + "\n}";
      for (int epoch = 1; epoch <= 100; ++epoch) {
        LossPoint point{epoch, (1 + 0.2 * seed) * (std::exp(-epoch / 12.0) + 1e-3), {}};
        if (epoch % 10 == 0) point.validation = 1.3 * point.train;
        run.curve.push_back(point);
      }
      for (int c = 1; c <= 10; ++c) {
        const double mse = (1 + seed) * (positional ? 1e-4 * c * c : 1e-3 * std::pow(c, 4));
        const double accuracy = positional ? 1.0 : 1.0 / c;
        run.tests.push_back({Split::test, "c", 1.0 * c, "accuracy", accuracy});
        run.tests.push_back({Split::test, "c", 1.0 * c, "mse", mse});
      }
      if (seed == 0) {
        AttentionMaps maps{"the same for every input", 4, 2, 9, 1, {}};
        for (int map = 0; map < 8; ++map) {
          for (int row = 0; row < 9; ++row) {
            for (int column = 0; column < 9; ++column) {
              maps.weights.push_back(column == (row + map) % 9 ? 0.6F : 0.05F);
            }
          }
        }
        run.attention.push_back(maps);
      }
      input.runs.push_back(run);
    }
  }
  return input;
}

}  // namespace posattn
