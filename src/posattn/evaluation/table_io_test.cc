#include "posattn/evaluation/table_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/evaluation/npy.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TableIo : public testing::Test {
 protected:
  const TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  const Table table_{.rows = 2, .columns = 2, .values = {1, 0.1f, -2.5f, 1e-20f}};
};

TEST_F(TableIo, WrittenIsRead) {
  for (const char* name : {"x.csv", "x.npy", "x"}) {
    write_table(folder_ / name, table_);
    const Table again = read_table(folder_ / name, 2);
    EXPECT_EQ(again.rows, 2);
    EXPECT_EQ(again.values, table_.values) << name;
  }
  EXPECT_TRUE(looks_like_npy(read_text_file(folder_ / "x.npy", 1000)));
  EXPECT_EQ(read_text_file(folder_ / "x.csv", 1000), "1,0.1\n-2.5,1e-20\n");
}

TEST_F(TableIo, ReadsStreamsOfEitherKind) {
  std::istringstream text("1 0.1\n-2.5 1e-20\n");
  EXPECT_EQ(read_table(text, "standard input", 2).values, table_.values);
  std::istringstream array(to_npy(table_));
  EXPECT_EQ(read_table(array, "standard input", 2).values, table_.values);
}

TEST_F(TableIo, ErrorsNameTheFileOrTheStream) {
  write_file(folder_ / "bad.csv", "1,2\n3,x\n");
  try {
    read_table(folder_ / "bad.csv");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.problem(), HasSubstr((folder_ / "bad.csv").string() + ":2: 'x'"));
  }
  std::istringstream empty;
  try {
    read_table(empty, "standard input");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.problem(), HasSubstr("standard input: no rows"));
  }
  EXPECT_THROW(read_table(folder_ / "missing.csv"), Error);
}

}  // namespace
}  // namespace posattn
