// The texts, styles and scripts that pages carry in themselves; the build embeds them.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace posattn {

struct PageAsset {
  std::string_view name;  // "steps.js"
  std::string_view text;
};
const std::vector<PageAsset>& page_assets();

inline std::string_view page_asset(std::string_view name) {
  return std::ranges::find(page_assets(), name, &PageAsset::name)->text;
}

}  // namespace posattn
