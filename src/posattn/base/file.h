// Files: read whole with a limit, written all or nothing, and a lock on a folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace posattn {

// The whole file; Error(data) when it is missing, a folder, unreadable, or above `limit` bytes.
std::vector<std::byte> read_file(const std::filesystem::path& path, uint64_t limit);
std::string read_text_file(const std::filesystem::path& path, uint64_t limit);

// Writes a temporary file in the same folder, makes it durable, and renames it over `path`: readers
// see the old file or the new one, never a part, also after a crash. Where `path` is a device or a
// pipe (/dev/stdout) it is written to directly. On failure nothing is left behind and Error(failed)
// says why.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file(const std::filesystem::path& path, std::string_view text);

// False also where the system does not let us know.
bool path_exists(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
std::filesystem::path absolute_path(const std::filesystem::path& path);

// Creates the folder and those above it; Error(failed) when it cannot.
void create_folder(const std::filesystem::path& folder);

// Held while a process works in `folder`, by a lock on the file `folder`/lock that ends with the
// process however it ends. Error(failed) when another lock is held on it.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;

 private:
  int descriptor_ = -1;
};

}  // namespace posattn
