// A playground page that carries models and a program of its owner's.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace posattn {

struct PageModel {
  std::string name;
  std::vector<std::byte> bytes;  // of a model file
};

struct PageProgram {
  std::string name, text, parameters;  // parameters as "K=16,q=4"
  int length = 8;
};

struct PageContent {
  std::vector<PageModel> models;  // for the first and the second place, as far as there are
  std::optional<PageProgram> program;
};

// `page` as scripts/playground_page makes it. Whatever the content, it stays data there. Throws
// Error(data), which names the file, where there is no place for it.
std::string page_with(std::string_view page, const std::string& file, const PageContent& content);

}  // namespace posattn
