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

// The whole file; Error(data) when it is missing, unreadable, above `limit` bytes, or no regular
// file: a pipe in its place is not waited for.
std::vector<std::byte> read_file(const std::filesystem::path& path, uint64_t limit);
std::string read_text_file(const std::filesystem::path& path, uint64_t limit);

// Reads what a user names as input: a file, a pipe or device (at most 1 GiB is read), or "-" for
// standard input.
std::string read_input_file(const std::filesystem::path& path, uint64_t limit);

// A file of the program's own. Writes a temporary file in the same folder, makes it durable, and
// renames it over `path`: readers see the old file or the new one, never a part, also after a
// crash. The old file's permissions stay; one that is write-protected is refused. A symbolic link
// is replaced, not followed. On failure nothing is left behind and Error(failed) says why.
void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_file(const std::filesystem::path& path, std::string_view text);

// The same for a file that a user names: a symbolic link is followed, and a device or a pipe is
// written to directly.
void write_output_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

// False also where the system does not let us know.
bool path_exists(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);
std::filesystem::path absolute_path(const std::filesystem::path& path);

// Creates the folder and those above it; Error(failed) when it cannot.
void create_folder(const std::filesystem::path& folder);

// Held while a process works in `folder`, by a lock on the file `folder`/lock that ends with the
// process however it ends. Error(failed), with `hint`, when another lock is held on it.
class FolderLock {
 public:
  explicit FolderLock(
      const std::filesystem::path& folder,
      const std::string& hint = "wait until it has ended, or choose another folder");
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;

 private:
  int descriptor_ = -1;
};

}  // namespace posattn
