#include "posattn/base/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "posattn/base/error.h"

namespace posattn {
namespace {

TEST(Memory, WhatCannotFitIsRefused) {
  EXPECT_GT(memory_limit(), uint64_t{1} << 26);
  EXPECT_NO_THROW(require_memory(1 << 26, "this"));
  try {
    require_memory(uint64_t{1} << 60, "this", "less");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::failed);
    EXPECT_EQ(error.problem(), "this needs 1152921504.6 GB of memory");
    EXPECT_EQ(error.hint(), "less");
  }
}

TEST(Memory, ALimitOfTheProcessCounts) {
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  constexpr uint64_t limit = uint64_t{1} << 34;
  const rlimit lower = {limit, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &lower), 0);
  EXPECT_LE(memory_limit(), limit);
  ::setrlimit(RLIMIT_AS, &before);
}

}  // namespace
}  // namespace posattn
