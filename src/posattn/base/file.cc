#include "posattn/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <random>
#include <system_error>

#include "posattn/base/error.h"
#include "posattn/base/memory.h"

namespace posattn {
namespace {

constexpr uint64_t largest_stream = uint64_t{1} << 30;  // a pipe does not say how long it is

std::string reason(int number) { return std::generic_category().message(number); }

std::string write_hint(int number) {
  constexpr std::pair<int, const char*> hints[] = {
      {ENOSPC, "the disk is full: free some space or write to another place"},
      {EDQUOT, "the disk is full: free some space or write to another place"},
      {EFBIG, "the largest file size allowed here is reached (see ulimit -f)"},
      {EACCES, "choose a place that you may write to"},
      {EPERM, "choose a place that you may write to"},
      {EROFS, "choose a place that you may write to"},
      {ENOENT, "create the folder first"},
      {ENOTDIR, "a part of the path is a file, not a folder"},
      {EISDIR, "it is a folder: give the name of a file"},
      {ELOOP, "it is a symbolic link: remove it"}};
  for (const auto& [known, hint] : hints) {
    if (number == known) return hint;
  }
  return "";
}

Error write_error(const std::filesystem::path& path, int number) {
  return Error(ExitCode::failed,
               fmt::format("cannot write '{}': {}", path.string(), reason(number)), "",
               write_hint(number));
}

Error read_error(const std::string& name, int number) {
  return Error(ExitCode::data, fmt::format("cannot read {}: {}", name, reason(number)), "",
               number == ENOENT ? "check the path" : "");
}

Error no_file(const char* verb, const std::filesystem::path& path, ExitCode code) {
  return Error(code, fmt::format("cannot {} '{}': it is a pipe or a device", verb, path.string()),
               "a regular file");
}

// A file descriptor that is closed at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }
  // Closes now; false with errno set when the last of the data could not be written.
  bool close() { return ::close(release()) == 0; }

 private:
  int value_;
};

bool write_all(int descriptor, std::span<const std::byte> bytes) {
  // At the file-size limit the system kills the process unless the signal is ignored; then write
  // fails with EFBIG, which can be reported.
  [[maybe_unused]] static const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return true;
}

// Some file systems cannot synchronise a folder and say EINVAL; that is no reason to fail.
bool synchronise_folder(const std::filesystem::path& folder) {
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() < 0) return false;
  return ::fsync(descriptor.get()) == 0 || errno == EINVAL;
}

void write_directly(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  Descriptor descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (descriptor.get() < 0 || !write_all(descriptor.get(), bytes) || !descriptor.close()) {
    throw write_error(path, errno);
  }
}

// Random, for a process may be killed and another have its number. A name has at most 255 bytes.
std::filesystem::path partial_name(const std::filesystem::path& path) {
  std::random_device device;
  const uint64_t number = uint64_t{device()} << 32 | device();
  return path.parent_path() /
         fmt::format("{}.{:016x}.partial", path.filename().string().substr(0, 230), number);
}

// Whoever could not read the old file cannot read the new one, while it is written or later. Where
// the system does not change modes, the file stays as it was made: for its owner alone.
void take_permissions(int descriptor, const struct stat& old) {
  mode_t mode = old.st_mode & 0777;
  // If the group changes, the new group must not get the permissions of the old one.
  if (::fchown(descriptor, old.st_uid, old.st_gid) != 0 &&
      ::fchown(descriptor, static_cast<uid_t>(-1), old.st_gid) != 0) {
    mode &= ~static_cast<mode_t>(S_IRWXG);
  }
  [[maybe_unused]] const int ignored = ::fchmod(descriptor, mode);
}

// Throws where `old`, which is at `path`, must not be replaced.
void check_replaceable(const std::filesystem::path& path, const struct stat& old) {
  if (S_ISDIR(old.st_mode)) throw write_error(path, EISDIR);
  if (!S_ISREG(old.st_mode)) throw no_file("write", path, ExitCode::failed);
  // Root may write to anything, but a write-protected file is meant to stay.
  const bool anybody = (old.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) != 0;
  if (anybody && ::access(path.c_str(), W_OK) == 0) return;
  throw Error(ExitCode::failed,
              fmt::format("cannot replace '{}': it is write-protected", path.string()), "",
              "choose another name, or make it writable (chmod u+w)");
}

// `path` itself is replaced, be it a link.
void write_and_rename(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  struct stat old = {};
  const bool replaces = ::lstat(path.c_str(), &old) == 0 && !S_ISLNK(old.st_mode);
  if (replaces) check_replaceable(path, old);
  std::filesystem::path temporary;
  int opened = -1;
  do {
    temporary = partial_name(path);
    opened = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                    replaces ? S_IRUSR | S_IWUSR : 0666);
  } while (opened < 0 && errno == EEXIST);
  Descriptor descriptor(opened);
  if (opened < 0) throw write_error(path, errno);
  if (replaces) take_permissions(opened, old);
  if (!write_all(opened, bytes) || ::fsync(opened) != 0 || !descriptor.close() ||
      ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int number = errno;
    ::unlink(temporary.c_str());
    throw write_error(path, number);
  }
  const std::filesystem::path folder = path.parent_path();
  if (!synchronise_folder(folder.empty() ? "." : folder)) throw write_error(path, errno);
}

// Follows the links that `path` names, whether or not there is a file.
std::filesystem::path behind_links(std::filesystem::path path) {
  constexpr int most_links = 40;  // as in the system
  std::error_code none;
  for (int links = 0; std::filesystem::is_symlink(path, none); ++links) {
    if (links == most_links) throw write_error(path, ELOOP);
    path = path.parent_path() / std::filesystem::read_symlink(path, none);
  }
  return path;
}

enum class Source { file, stream };

// Does not wait for somebody to write into a pipe where a file is wanted.
Descriptor open_source(const std::filesystem::path& path, Source source) {
  if (source == Source::file) {
    return Descriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  }
  return Descriptor(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

// Reads to the end into anything with resize and data; the size known beforehand is only a guide,
// for a file may grow and a pipe has none.
template <class Bytes>
Bytes read_whole(const std::filesystem::path& path, uint64_t limit, Source source) {
  const std::string name = source == Source::stream && path == "-"
                               ? "standard input"
                               : fmt::format("'{}'", path.string());
  const Descriptor descriptor = open_source(path, source);
  struct stat status = {};
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0) {
    throw read_error(name, errno);
  }
  if (S_ISDIR(status.st_mode)) throw read_error(name, EISDIR);
  const bool regular = S_ISREG(status.st_mode);
  if (!regular && source == Source::file) throw no_file("read", path, ExitCode::data);
  if (!regular) limit = std::min(limit, largest_stream);
  const auto too_large = [&](const std::string& size) {
    return Error(ExitCode::data, fmt::format("{} is too large ({} bytes)", name, size),
                 fmt::format("at most {} bytes{}", limit, regular ? "" : " from a pipe"));
  };
  const uint64_t guess = regular ? static_cast<uint64_t>(status.st_size) : 0;
  if (guess > limit) throw too_large(std::to_string(guess));
  require_memory(guess, name);

  Bytes bytes;
  bytes.resize(guess + 1);  // one more, so that the end of the file shows without growing
  uint64_t size = 0;
  for (;;) {
    const ssize_t count = ::read(descriptor.get(), bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw read_error(name, errno);
    if (count == 0) break;
    size += static_cast<uint64_t>(count);
    if (size > limit) throw too_large(fmt::format("more than {}", limit));
    if (size == bytes.size()) bytes.resize(std::max<uint64_t>(4096, 2 * size));
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::vector<std::byte> read_file(const std::filesystem::path& path, uint64_t limit) {
  return read_whole<std::vector<std::byte>>(path, limit, Source::file);
}

std::string read_text_file(const std::filesystem::path& path, uint64_t limit) {
  return read_whole<std::string>(path, limit, Source::file);
}

std::string read_input_file(const std::filesystem::path& path, uint64_t limit) {
  return read_whole<std::string>(path, limit, Source::stream);
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  write_and_rename(path, bytes);
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  write_file(path, std::as_bytes(std::span(text)));
}

void write_output_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    return write_directly(path, bytes);
  }
  write_and_rename(behind_links(path), bytes);
}

void create_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && !std::filesystem::is_directory(folder)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error) {
    throw Error(
        ExitCode::failed,
        fmt::format("cannot create the folder '{}': {}", folder.string(), reason(error.value())),
        "", error == std::errc::no_such_file_or_directory ? "" : write_hint(error.value()));
  }
}

bool path_exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::filesystem::path absolute_path(const std::filesystem::path& path) {
  return std::filesystem::absolute(path);
}

FolderLock::FolderLock(const std::filesystem::path& folder, const std::string& hint) {
  const std::filesystem::path path = folder / "lock";
  Descriptor descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (descriptor.get() < 0) throw write_error(path, errno);
  if (::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw write_error(path, errno);
    throw Error(ExitCode::failed,
                fmt::format("the folder '{}' is in use by a running process", folder.string()), "",
                hint);
  }
  descriptor_ = descriptor.release();
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

}  // namespace posattn
