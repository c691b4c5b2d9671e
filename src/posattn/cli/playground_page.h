// The playground's page with models and a program inside, for the commands that write one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "posattn/playground/page.h"

namespace posattn {

// The page that playground/build.mjs made: in the build folder beside this program's, or among the
// installed data. Throws Error(data) with what makes it.
std::filesystem::path find_playground();

// Model files as the page can play them side by side, tried here as it does there: loaded, and
// asked for an answer and their attention. Throws Error(data) for what it cannot: tokens, tasks
// that it does not know, more nodes or bytes than it can show, models of different tasks or
// lengths, more than two.
std::vector<PageModel> page_models(const std::vector<std::filesystem::path>& files);

// The page `base` with the content inside.
std::string filled_playground(const std::filesystem::path& base, const PageContent& content);

}  // namespace posattn
