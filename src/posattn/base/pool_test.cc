#include "posattn/base/pool.h"

#include <gtest/gtest.h>

namespace posattn {
namespace {

TEST(Pool, LendsEachOnceAndAgainWhenItIsBack) {
  Pool<std::vector<int>> pool;
  auto first = pool.borrow(3);
  const auto second = pool.borrow(3);
  EXPECT_NE(first.get(), second.get());
  first->push_back(7);
  const std::vector<int>* place = first.get();
  first.reset();
  const auto again = pool.borrow(3);
  EXPECT_EQ(again.get(), place);
  EXPECT_EQ(again->size(), 4U);
}

}  // namespace
}  // namespace posattn
