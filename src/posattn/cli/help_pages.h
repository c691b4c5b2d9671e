// What the commands say of themselves, for reading elsewhere than on a terminal.
#pragma once

#include <filesystem>
#include <string>

namespace CLI {
class App;
}

namespace posattn {

// docs/commands.md.
std::string markdown_page(const CLI::App& app);

// posattn.1, and posattn-train.1 for each command.
void write_manual_pages(const CLI::App& app, const std::filesystem::path& folder);

}  // namespace posattn
