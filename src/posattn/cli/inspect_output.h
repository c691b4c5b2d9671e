// What `posattn inspect` prints.
#pragma once

#include <optional>
#include <string>

#include "posattn/model/model_file.h"
#include "posattn/report/report_input.h"

namespace posattn {

struct Inspection {
  std::string path;
  const Model* model = nullptr;
  std::optional<AttentionMaps> attention;  // absent when there is no input to show it for
};

std::string inspection_text(const Inspection& inspection);
std::string inspection_json(const Inspection& inspection);

}  // namespace posattn
