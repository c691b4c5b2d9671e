#include "posattn/base/file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "posattn/base/error.h"
#include "posattn/base/temporary_folder_test.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }

  const TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
};

template <class Action>
std::string message_of(ExitCode code, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "no error";
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

mode_t mode_of(const fs::path& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(FileTest, WrittenIsRead) {
  const fs::path path = folder_ / "a";
  for (const std::string& text : {std::string(), std::string("one"), std::string(100000, 'x')}) {
    write_file(path, text);
    EXPECT_EQ(read_text_file(path, 100000), text);
    EXPECT_EQ(read_file(path, 100000).size(), text.size());
  }
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, ReadErrorsAreClear) {
  const auto read = [&](const fs::path& path) {
    return message_of(ExitCode::data, [&] { read_text_file(path, 10); });
  };
  EXPECT_TRUE(has(read(folder_ / "missing"), "missing': No such file"));
  EXPECT_TRUE(has(read(folder_), "Is a directory"));
  EXPECT_TRUE(has(read("/dev/zero"), "it is a pipe or a device"));
  write_file(folder_ / "large", std::string(11, 'x'));
  EXPECT_TRUE(has(read(folder_ / "large"), "too large (11 bytes)"));
  EXPECT_TRUE(has(read(folder_ / "large" / "below"), "Not a directory"));
}

TEST_F(FileTest, APipeIsNoFile) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
  const auto refused = [](ExitCode code, auto&& action) {
    return has(message_of(code, action), "it is a pipe or a device");
  };
  EXPECT_TRUE(refused(ExitCode::data, [&] { read_file(pipe, 10); }));  // without waiting
  EXPECT_TRUE(refused(ExitCode::failed, [&] { write_file(pipe, "text"); }));
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(FileTest, InputMayComeFromAPipe) {
  EXPECT_EQ(read_input_file("/dev/null", 10), "");
  EXPECT_TRUE(has(message_of(ExitCode::data, [] { read_input_file("/dev/zero", 5000); }),
                  "'/dev/zero' is too large (more than 5000 bytes)"));
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  const std::string text(60'000, 'x');  // a pipe holds that many
  ASSERT_EQ(::write(ends[1], text.data(), text.size()), 60'000);
  ::close(ends[1]);
  EXPECT_EQ(read_input_file(fmt::format("/dev/fd/{}", ends[0]), 60'000), text);
  ::close(ends[0]);
}

TEST_F(FileTest, WriteErrorsAreClearAndLeaveNothing) {
  const auto write = [](const fs::path& path) {
    return message_of(ExitCode::failed, [&] { write_output_file(path, bytes_of("text")); });
  };
  EXPECT_TRUE(has(write("/dev/full"), "the disk is full"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_TRUE(has(write(folder_), "it is a folder"));
  EXPECT_TRUE(has(write(folder_ / "none" / "a"), "create the folder first"));
  write_file(folder_ / "a", "old");
  EXPECT_TRUE(has(write(folder_ / "a" / "b"), "a file, not a folder"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, FollowsTheLinksOfUsers) {
  write_file(folder_ / "a", "old");
  fs::create_symlink("a", folder_ / "link");  // as seen from its folder
  fs::create_symlink(folder_ / "link", folder_ / "link-to-link");
  fs::create_symlink(folder_ / "later", folder_ / "dangling");
  write_output_file(folder_ / "link-to-link", bytes_of("new"));
  write_output_file(folder_ / "dangling", bytes_of("new"));
  for (const char* link : {"link", "link-to-link", "dangling"}) {
    EXPECT_TRUE(fs::is_symlink(folder_ / link)) << link;
  }
  EXPECT_EQ(read_text_file(folder_ / "a", 10), "new");
  EXPECT_EQ(read_text_file(folder_ / "later", 10), "new");
  fs::create_symlink("ring", folder_ / "ring");
  EXPECT_TRUE(has(
      message_of(ExitCode::failed, [&] { write_output_file(folder_ / "ring", bytes_of("new")); }),
      "links"));
}

TEST_F(FileTest, ReplacesLinksInFoldersOfItsOwn) {
  write_file(folder_ / "a", "old");
  fs::create_symlink(folder_ / "a", folder_ / "link");
  write_file(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder_ / "link")));
  EXPECT_EQ(read_text_file(folder_ / "link", 10), "new");
  EXPECT_EQ(read_text_file(folder_ / "a", 10), "old");
  fs::create_symlink(folder_ / "a", folder_ / "lock");
  EXPECT_THROW(FolderLock{folder_}, Error);
}

// A process in a container has the number of the one before it.
TEST_F(FileTest, LeftoversOfAnEarlierProcessDoNotMatter) {
  const fs::path path = folder_ / "a";
  for (int counter = 0; counter < 100; ++counter) {
    std::ofstream(fmt::format("{}.{}-{}.partial", path.string(), ::getpid(), counter)) << "left";
  }
  write_file(path, "new");
  EXPECT_EQ(read_text_file(path, 10), "new");
  EXPECT_EQ(entries(), 101u);
}

TEST_F(FileTest, TheLongestNames) {
  write_file(folder_ / std::string(255, 'x'), "new");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, PermissionsStay) {
  const fs::path path = folder_ / "a";
  const mode_t before = ::umask(027);
  write_file(path, "old");
  EXPECT_EQ(mode_of(path), 0640u);
  for (const mode_t mode : {0600u, 0666u, 0755u, 0200u}) {
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    write_file(path, "new");
    EXPECT_EQ(mode_of(path), mode);
  }
  ::umask(before);
}

TEST_F(FileTest, WriteProtectedFilesStay) {
  const fs::path path = folder_ / "a";
  write_file(path, "old");
  ASSERT_EQ(::chmod(path.c_str(), 0444), 0);
  for (const auto write :
       {write_output_file,
        static_cast<void (*)(const fs::path&, std::span<const std::byte>)>(write_file)}) {
    EXPECT_TRUE(has(message_of(ExitCode::failed, [&] { write(path, bytes_of("new")); }),
                    "it is write-protected"));
  }
  EXPECT_EQ(read_text_file(path, 10), "old");
  EXPECT_EQ(entries(), 1u);
}

// In a process of its own: the limit stays with the process.
TEST_F(FileTest, FileSizeLimitKeepsTheOldFile) {
  const fs::path path = folder_ / "a";
  write_file(path, "old");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit = {1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file(path, std::string(5000, 'x'));
    } catch (const Error& error) {
      ::_exit(has(error.what(), "ulimit -f") ? 7 : 8);
    }
    ::_exit(9);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read_text_file(path, 10), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, CreatesFolders) {
  create_folder(folder_ / "x" / "y");
  create_folder(folder_ / "x" / "y");
  EXPECT_TRUE(fs::is_directory(folder_ / "x" / "y"));
  write_file(folder_ / "a", "text");
  for (const fs::path& path : {folder_ / "a", folder_ / "a" / "b"}) {
    EXPECT_TRUE(has(message_of(ExitCode::failed, [&] { create_folder(path); }), "not a folder"))
        << path;
  }
}

TEST_F(FileTest, OneLockAtATime) {
  {
    FolderLock lock(folder_);
    EXPECT_TRUE(has(message_of(ExitCode::failed, [&] { FolderLock second(folder_); }),
                    "in use by a running process"));
    const FolderLock moved = std::move(lock);
    EXPECT_TRUE(has(message_of(ExitCode::failed, [&] { FolderLock second(folder_); }), "in use"));
  }
  EXPECT_NO_THROW(FolderLock{folder_});
  EXPECT_TRUE(has(message_of(ExitCode::failed, [&] { FolderLock none(folder_ / "none"); }),
                  "No such file"));
}

}  // namespace
}  // namespace posattn
