// What `posattn inspect` prints.
#pragma once

#include <optional>
#include <string>

#include "posattn/model/file/model_file.h"
#include "posattn/report/svg/attention_svg.h"

namespace posattn {

// A routed model may have more nodes than any map could show.
constexpr int most_routed_nodes = 256;
inline bool shows_attention(const ModelSpec& spec) {
  return !spec.routed() || spec.nodes() <= most_routed_nodes;
}

struct Inspection {
  std::string path;
  const Model* model = nullptr;
  std::optional<AttentionMaps> attention;  // absent when there is no input or place for it
  std::optional<int> node;                 // show where this one looks, in place of the maps
};

std::string inspection_text(const Inspection& inspection);
std::string inspection_json(const Inspection& inspection);

}  // namespace posattn
