#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

// n nodes, and `extra` more; its kind is a word.
class Chosen final : public Task {
 public:
  Chosen(int extra, int kind) : extra_(extra), kind_(kind) {}
  std::string_view name() const override { return "chosen-of-a-test"; }
  std::string_view description() const override { return "a task of a test"; }
  std::vector<TaskParameter> parameters() const override {
    return {{"extra", "further nodes", 2, 0, 9}, {"kind", "a word", 1, 0, 0, {"small", "large"}}};
  }
  std::unique_ptr<const Task> variant(std::span<const int> values) const override {
    return std::make_unique<Chosen>(values[0], values[1]);
  }
  TaskShape shape(int length) const override {
    return {.real_nodes = length + extra_, .data_columns = 1 + kind_};
  }

 private:
  int extra_, kind_;
};

TEST(TaskParameters, NameAVariant) {
  const Chosen task(2, 1);
  const struct {
    const char* set;
    int extra, kind;
  } rows[] = {{"", 2, 1},
              {"extra=0", 0, 1},
              {"kind=small", 2, 0},
              {"kind=small,extra=9", 9, 0},
              {"extra=9,kind=small", 9, 0}};
  for (const auto& row : rows) {
    const TaskShape shape = variant_of(task, row.set).shape(1);
    EXPECT_EQ(shape.real_nodes, 1 + row.extra) << row.set;
    EXPECT_EQ(shape.data_columns, 1 + row.kind) << row.set;
  }
  EXPECT_EQ(&variant_of(task, ""), &task);
  // One task, in whatever order its parameters stand.
  EXPECT_EQ(&variant_of(task, "kind=small,extra=9"), &variant_of(task, "extra=9,kind=small"));
}

TEST(TaskParameters, RefuseWhatDoesNotExist) {
  const Chosen task(2, 1);
  for (const char* set :
       {"width=3", "extra", "extra=", "extra=10", "extra=-1", "extra=1.5", "extra=2 ", "kind=tiny",
        "kind=0", ",", "extra=1,", "extra=1,extra=1", "extra=1;kind=small"}) {
    try {
      variant_of(task, set);
      FAIL() << set;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      EXPECT_EQ(error.expected(),
                "parameters of the task, each once (extra: 0 to 9; kind: one of small, large)");
      EXPECT_THAT(error.hint(), testing::HasSubstr("extra=2,kind=large"));
    }
  }
  try {
    find_task("sort", "q=3");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.problem(), testing::HasSubstr("task sort, which has no parameters"));
  }
}

}  // namespace
}  // namespace posattn
