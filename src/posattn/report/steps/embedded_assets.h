// The files of this folder that a page carries in itself; the build embeds them.
#pragma once

#include <string_view>
#include <vector>

namespace posattn {

struct PageAsset {
  std::string_view name;  // "steps.js"
  std::string_view text;
};
const std::vector<PageAsset>& page_assets();

}  // namespace posattn
