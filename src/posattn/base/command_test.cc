#include "posattn/base/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"

namespace posattn {
namespace {

using testing::HasSubstr;

CommandEnd shell(const std::string& script) { return run_to_end({"sh", "-c", script}); }

TEST(CommandTest, WhatAProgramWroteAndHowItEnded) {
  const CommandEnd end = shell("echo said; echo complained >&2; cat; exit 3");
  EXPECT_EQ(end.output, "said\n");
  EXPECT_EQ(end.messages, "complained\n");
  EXPECT_EQ(end.problem, "ended with exit code 3");
  EXPECT_EQ(shell("kill -9 $$").problem, "was killed by signal 9 (Killed)");
}

TEST(CommandTest, OutputsMayBeLargerThanPipes) {
  const CommandEnd end = shell("head -c 200000 /dev/zero; head -c 200000 /dev/zero >&2");
  EXPECT_EQ(end.output.size(), 200'000);
  EXPECT_EQ(end.messages.size(), 200'000);
  EXPECT_EQ(end.problem, "");
}

TEST(CommandTest, ArgumentsAreNoShellsWords) {
  EXPECT_EQ(run_command({"printf", "%s|", "a b", "$HOME", ""}), "a b|$HOME||");
}

TEST(CommandTest, AProgramThatFailsOrDoesNotExistIsAnError) {
  const auto problem_of = [](const std::vector<std::string>& arguments) -> std::string {
    try {
      return run_command(arguments);
    } catch (const Error& error) {
      return error.problem();
    }
  };
  EXPECT_EQ(problem_of({"false"}), "'false' ended with exit code 1");
  EXPECT_EQ(problem_of({"/does/not/exist"}), "cannot start '/does/not/exist': it is not installed");
  EXPECT_THAT(problem_of({"/"}), HasSubstr("cannot start '/': "));
}

TEST(Shell, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(shell_command({"posattn", "train", "--out", "runs/a-1"}),
            "posattn train --out runs/a-1");
  EXPECT_EQ(shell_command({"posattn", "a b", "", "$x", "it's"}),
            "posattn 'a b' '' '$x' 'it'\\''s'");
}

}  // namespace
}  // namespace posattn
