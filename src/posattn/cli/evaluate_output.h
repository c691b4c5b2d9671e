// What `posattn evaluate` prints.
#pragma once

#include <string>
#include <vector>

#include "posattn/evaluation/evaluate.h"

namespace posattn {

struct EvaluatedModel {
  std::string path, task, architecture;
  int length = 0;
  std::vector<ScaleResult> scales;
};

std::string evaluation_text(const std::vector<EvaluatedModel>& models, bool per_node);
std::string evaluation_json(const std::vector<EvaluatedModel>& models);

}  // namespace posattn
