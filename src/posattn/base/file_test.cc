#include "posattn/base/file.h"

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
  EXPECT_TRUE(has(read("/dev/zero"), "too large"));
  write_file(folder_ / "large", std::string(11, 'x'));
  EXPECT_TRUE(has(read(folder_ / "large"), "too large (11 bytes)"));
  EXPECT_TRUE(has(read(folder_ / "large" / "below"), "Not a directory"));
  EXPECT_EQ(read_text_file("/dev/null", 10), "");
}

TEST_F(FileTest, WriteErrorsAreClearAndLeaveNothing) {
  const auto write = [](const fs::path& path) {
    return message_of(ExitCode::failed, [&] { write_file(path, "text"); });
  };
  EXPECT_TRUE(has(write("/dev/full"), "the disk is full"));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_TRUE(has(write(folder_), "it is a folder"));
  EXPECT_TRUE(has(write(folder_ / "none" / "a"), "create the folder first"));
  write_file(folder_ / "a", "old");
  EXPECT_TRUE(has(write(folder_ / "a" / "b"), "a file, not a folder"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, ReplacesTheFileBehindALink) {
  write_file(folder_ / "a", "old");
  fs::create_symlink(folder_ / "a", folder_ / "link");
  write_file(folder_ / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(read_text_file(folder_ / "a", 10), "new");
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
