#include "posattn/base/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"

namespace posattn {
namespace {

using testing::ElementsAre;

ChildProcess shell(const std::string& script) {
  return ChildProcess({"/bin/sh", "-c", script}, {"WORD=word"});
}

// Until it closes its output.
std::vector<std::string> all_lines(ChildProcess& child) {
  std::vector<std::string> lines;
  while (!child.closed()) {
    for (std::string& line : child.read(1000)) lines.push_back(std::move(line));
  }
  return lines;
}

TEST(ChildProcessTest, HearsAndSaysLines) {
  ChildProcess child = shell("read line; echo \"$line $WORD\"; echo; printf torn; exit 3");
  child.write("a longer line");
  EXPECT_THAT(all_lines(child), ElementsAre("a longer line word", ""));
  EXPECT_EQ(child.wait(), "ended with exit code 3");
}

TEST(ChildProcessTest, LinesMayBeLargerThanPipes) {
  ChildProcess child = shell("cat");
  const std::string large(60'000, 'x');
  child.write(large);
  std::vector<std::string> lines;
  while (lines.empty()) lines = child.read(1000);
  EXPECT_THAT(lines, ElementsAre(large));
  EXPECT_TRUE(child.read(0).empty());
  EXPECT_EQ(child.wait(), "ended with exit code 0");
}

TEST(ChildProcessTest, SaysHowItWasKilled) {
  ChildProcess child = shell("kill -9 $$");
  EXPECT_TRUE(all_lines(child).empty());
  EXPECT_EQ(child.wait(), "was killed by signal 9 (Killed)");
}

TEST(ChildProcessTest, AProgramThatDoesNotExistIsAnError) {
  EXPECT_THROW(ChildProcess({"/does/not/exist"}, {}), Error);
}

}  // namespace
}  // namespace posattn
