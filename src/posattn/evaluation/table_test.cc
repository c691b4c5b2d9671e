#include "posattn/evaluation/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"

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

TEST_F(TableIo, ContentTellsTheKind) {
  write_file(folder_ / "x", to_csv(table_));
  write_file(folder_ / "y", to_npy(table_));
  for (const char* name : {"x", "y"}) {
    const Table again = parse_table(read_bytes(folder_ / name), name, 2);
    EXPECT_EQ(again.rows, 2);
    EXPECT_EQ(again.values, table_.values) << name;
  }
}

TEST_F(TableIo, ErrorsNameTheTable) {
  try {
    parse_table("1,2\n3,x\n", "bad.csv");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.problem(), HasSubstr("bad.csv:2: 'x'"));
  }
  try {
    parse_table("", "standard input");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.problem(), HasSubstr("standard input: no rows"));
  }
  EXPECT_THROW(read_bytes(folder_ / "missing.csv"), Error);
}

}  // namespace
}  // namespace posattn
