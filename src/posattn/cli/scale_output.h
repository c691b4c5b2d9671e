// What `posattn scale` prints and draws.
#pragma once

#include <string>
#include <vector>

#include "posattn/bounds/range_split.h"
#include "posattn/model/file/model_file.h"

namespace posattn {

struct ScaledModel {
  std::string path;
  ModelSpec spec;
  ModelOrigin origin;
  bounds::RangeSplit split;
};

// Models of one task, architecture and length are summarised by medians.
std::string scale_text(const std::vector<ScaledModel>& models, int64_t samples);
std::string scale_json(const std::vector<ScaledModel>& models, int64_t samples);
// MSE / c^2 against c, and dotted what it tends to; "" where no point can be drawn.
std::string scale_figure(const std::vector<ScaledModel>& models);

}  // namespace posattn
