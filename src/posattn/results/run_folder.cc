#include "posattn/results/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "posattn/base/error.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t largest_manifest = 16 << 20;
constexpr uint64_t largest_metrics = uint64_t{8} << 30;

FolderLock make_and_lock(const fs::path& folder) {
  create_folder(folder);
  return FolderLock(folder);
}

// Safe under the lock: no running process owns them.
void remove_partial_files(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".partial") fs::remove(entry.path(), ignored);
  }
}

bool holds_nothing(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() != "lock") return false;
  }
  return true;
}

// The epoch of a metrics line, or nothing when the line is torn.
std::optional<int64_t> epoch_of(std::string_view line) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("epoch") || !json["epoch"].is_number_integer()) {
    return std::nullopt;
  }
  return json["epoch"].get<int64_t>();
}

// `write` gets the open file and returns the system's number of what went wrong, or 0.
template <class Write>
void with_open(const fs::path& metrics, int flags, const Write& write) {
  const int descriptor = ::open(metrics.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC | flags, 0666);
  int problem = descriptor < 0 ? errno : write(descriptor);
  if (descriptor >= 0 && ::close(descriptor) != 0 && problem == 0) problem = errno;
  if (problem == 0) return;
  throw Error(ExitCode::failed,
              fmt::format("cannot write '{}': {}", metrics.string(),
                          std::generic_category().message(problem)),
              "",
              problem == ELOOP ? "it is a symbolic link: remove it"
                               : "free some space, then go on with --resume");
}

}  // namespace

RunFolder::RunFolder(const fs::path& folder, const std::string& configuration,
                     const std::vector<std::string>& neutral, bool resume)
    : folder_(folder), lock_(make_and_lock(folder)) {
  remove_partial_files(folder_);
  if (!fs::exists(manifest())) {
    if (holds_nothing(folder_)) return;
    throw Error(ExitCode::configuration,
                fmt::format("folder '{}' holds files of something else", folder_.string()),
                "an empty or new folder, or one of a run", "choose another --out");
  }
  previous_ = manifest_from_json(read_text_file(manifest(), largest_manifest), manifest().string());
  const std::string difference =
      settings_difference(previous_->configuration, configuration, neutral);
  if (!difference.empty()) {
    throw Error(ExitCode::configuration,
                fmt::format("folder '{}' holds another run: {}", folder_.string(), difference),
                "a new folder, or the same settings with --resume", "choose another --out");
  }
  if (!resume) {
    throw Error(ExitCode::configuration,
                fmt::format("folder '{}' already holds this run ({} after epoch {})",
                            folder_.string(), to_string(previous_->status), previous_->epoch),
                "a new folder", "add --resume to go on with it, or choose another --out");
  }
}

void RunFolder::remove_if_unused() const {
  std::error_code ignored;
  if (!fs::exists(folder_, ignored) || !holds_nothing(folder_)) return;
  fs::remove(folder_ / "lock", ignored);
  fs::remove(folder_, ignored);
}

void RunFolder::write_config(const std::string& toml) const { write_file(config(), toml); }

void RunFolder::write_manifest(const Manifest& manifest_now) const {
  write_file(manifest(), to_json(manifest_now));
}

void RunFolder::append_metrics(const std::string& json_line) const {
  with_open(metrics(), O_CREAT | O_APPEND, [line = json_line + "\n"](int descriptor) {
    struct stat before = {};
    const bool known = ::fstat(descriptor, &before) == 0;
    const ssize_t written = ::write(descriptor, line.data(), line.size());
    if (written == static_cast<ssize_t>(line.size())) return 0;
    const int problem = written < 0 ? errno : ENOSPC;
    return known && ::ftruncate(descriptor, before.st_size) != 0 ? errno : problem;
  });
}

void RunFolder::sync_metrics() const {
  if (!fs::exists(metrics())) return;
  with_open(metrics(), 0, [](int descriptor) { return ::fsync(descriptor) != 0 ? errno : 0; });
}

void RunFolder::drop_metrics_after(int64_t epoch) const {
  if (!fs::exists(metrics())) return;
  const std::string text = read_text_file(metrics(), largest_metrics);
  std::size_t keep = 0;
  while (keep < text.size()) {
    const std::size_t end = text.find('\n', keep);
    if (end == std::string::npos) break;
    const auto line_epoch = epoch_of(std::string_view(text).substr(keep, end - keep));
    if (!line_epoch || *line_epoch > epoch) break;
    keep = end + 1;
  }
  if (keep < text.size()) write_file(metrics(), std::string_view(text).substr(0, keep));
}

void RunFolder::replace_last_metrics(const std::string& json_line) const {
  std::vector<std::string> lines = metrics_lines();
  lines.back() = json_line;
  write_file(metrics(), fmt::format("{}\n", fmt::join(lines, "\n")));
}

std::vector<std::string> RunFolder::metrics_lines() const {
  if (!fs::exists(metrics())) return {};
  const std::string text = read_text_file(metrics(), largest_metrics);
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace posattn
