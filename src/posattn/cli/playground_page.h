// The playground's page with models and a program inside, for the commands that write one.
#pragma once

#include <filesystem>

#include "posattn/playground/page.h"

namespace posattn {

// The page of the source tree that this program was built in, or of its installation. Throws
// Error(data) where there is none.
std::filesystem::path find_playground();

// Model files as the page can play them side by side, tried here as it does there: loaded, and
// asked for an answer and their attention. Throws Error(data) for what it cannot: tokens, tasks
// that it does not know, more nodes or bytes than it can show, models of different tasks or
// lengths, more than two.
std::vector<PageModel> page_models(const std::vector<std::filesystem::path>& files);

// The page `base` with the content inside.
std::string filled_playground(const std::filesystem::path& base, const PageContent& content);

}  // namespace posattn
