// Files in a browser, which has none: reading and writing throw, and nothing exists.
#include "posattn/base/file.h"

#include <fmt/format.h>

#include "posattn/base/error.h"

namespace posattn {
namespace {

Error no_files(const char* verb, const std::filesystem::path& path) {
  return Error(ExitCode::data,
               fmt::format("cannot {} '{}': there are no files here", verb, path.string()),
               "the bytes themselves");
}

}  // namespace

std::vector<std::byte> read_file(const std::filesystem::path& path, uint64_t) {
  throw no_files("read", path);
}
std::string read_text_file(const std::filesystem::path& path, uint64_t) {
  throw no_files("read", path);
}
std::string read_input_file(const std::filesystem::path& path, uint64_t) {
  throw no_files("read", path);
}

void write_file(const std::filesystem::path& path, std::span<const std::byte>) {
  throw no_files("write", path);
}
void write_file(const std::filesystem::path& path, std::string_view) {
  throw no_files("write", path);
}
void write_output_file(const std::filesystem::path& path, std::span<const std::byte>) {
  throw no_files("write", path);
}

void create_folder(const std::filesystem::path& folder) { throw no_files("create", folder); }

bool path_exists(const std::filesystem::path&) { return false; }
bool is_folder(const std::filesystem::path&) { return false; }
std::filesystem::path absolute_path(const std::filesystem::path& path) { return path; }

FolderLock::FolderLock(const std::filesystem::path& folder, const std::string& /*hint*/) {
  throw no_files("lock", folder);
}
FolderLock::~FolderLock() = default;
FolderLock::FolderLock(FolderLock&& other) noexcept : descriptor_(other.descriptor_) {}
FolderLock& FolderLock::operator=(FolderLock&&) noexcept = default;

}  // namespace posattn
