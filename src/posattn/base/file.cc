#include "posattn/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "posattn/base/error.h"

namespace posattn {
namespace {

std::string reason(int number) { return std::generic_category().message(number); }

std::string write_hint(int number) {
  switch (number) {
    case ENOSPC:
    case EDQUOT:
      return "the disk is full: free some space or write to another place";
    case EFBIG:
      return "the largest file size allowed here is reached (see ulimit -f)";
    case EACCES:
    case EPERM:
    case EROFS:
      return "choose a place that you may write to";
    case ENOENT:
      return "create the folder first";
    case ENOTDIR:
      return "a part of the path is a file, not a folder";
    case EISDIR:
      return "it is a folder: give the name of a file";
    default:
      return "";
  }
}

Error write_error(const std::filesystem::path& path, int number) {
  return Error(ExitCode::failed,
               fmt::format("cannot write '{}': {}", path.string(), reason(number)), "",
               write_hint(number));
}

Error read_error(const std::filesystem::path& path, int number) {
  return Error(ExitCode::data, fmt::format("cannot read '{}': {}", path.string(), reason(number)),
               "", number == ENOENT ? "check the path" : "");
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

void write_and_rename(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  static std::atomic<unsigned> counter = 0;  // threads may write the same path
  const std::filesystem::path temporary =
      fmt::format("{}.{}-{}.partial", path.string(), ::getpid(), counter++);
  Descriptor descriptor(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (descriptor.get() < 0) throw write_error(path, errno);
  if (!write_all(descriptor.get(), bytes) || ::fsync(descriptor.get()) != 0 ||
      !descriptor.close() || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int number = errno;
    ::unlink(temporary.c_str());
    throw write_error(path, number);
  }
  const std::filesystem::path folder = path.parent_path();
  if (!synchronise_folder(folder.empty() ? "." : folder)) throw write_error(path, errno);
}

// Reads to the end into anything with resize and data; the size known beforehand is only a guide,
// for a file may grow and a pipe has none.
template <class Bytes>
Bytes read_whole(const std::filesystem::path& path, uint64_t limit) {
  const auto too_large = [&](uint64_t size) {
    return Error(ExitCode::data, fmt::format("'{}' is too large ({} bytes)", path.string(), size),
                 fmt::format("at most {} bytes", limit));
  };
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status = {};
  if (descriptor.get() < 0 || ::fstat(descriptor.get(), &status) != 0) {
    throw read_error(path, errno);
  }
  if (S_ISDIR(status.st_mode)) throw read_error(path, EISDIR);
  const uint64_t guess = S_ISREG(status.st_mode) ? static_cast<uint64_t>(status.st_size) : 0;
  if (guess > limit) throw too_large(guess);

  Bytes bytes;
  bytes.resize(guess + 1);  // one more, so that the end of the file shows without growing
  uint64_t size = 0;
  for (;;) {
    const ssize_t count = ::read(descriptor.get(), bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw read_error(path, errno);
    if (count == 0) break;
    size += static_cast<uint64_t>(count);
    if (size > limit) throw too_large(size);
    if (size == bytes.size()) bytes.resize(std::max<uint64_t>(4096, 2 * size));
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::vector<std::byte> read_file(const std::filesystem::path& path, uint64_t limit) {
  return read_whole<std::vector<std::byte>>(path, limit);
}

std::string read_text_file(const std::filesystem::path& path, uint64_t limit) {
  return read_whole<std::string>(path, limit);
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  // At the file-size limit the system kills the process unless the signal is ignored; then write
  // fails with EFBIG, which can be reported.
  [[maybe_unused]] static const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  struct stat status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) throw write_error(path, EISDIR);
  if (exists && !S_ISREG(status.st_mode)) return write_directly(path, bytes);
  std::error_code error;
  // Replace the file behind a link (/dev/stdout into a file), not the link.
  const std::filesystem::path target =
      exists ? std::filesystem::canonical(path, error) : std::filesystem::path();
  write_and_rename(target.empty() ? path : target, bytes);
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  write_file(path, std::as_bytes(std::span(text)));
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

FolderLock::FolderLock(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  Descriptor descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (descriptor.get() < 0) throw write_error(path, errno);
  if (::flock(descriptor.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw write_error(path, errno);
    throw Error(ExitCode::failed,
                fmt::format("the folder '{}' is in use by a running process", folder.string()), "",
                "wait until it has ended, or choose another folder");
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
