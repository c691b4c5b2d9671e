#include "posattn/base/shell.h"

#include <gtest/gtest.h>

namespace posattn {
namespace {

TEST(Shell, QuotesWhatAShellWouldRead) {
  EXPECT_EQ(shell_command({"posattn", "train", "--out", "runs/a-1"}),
            "posattn train --out runs/a-1");
  EXPECT_EQ(shell_command({"posattn", "a b", "", "$x", "it's"}),
            "posattn 'a b' '' '$x' 'it'\\''s'");
}

}  // namespace
}  // namespace posattn
