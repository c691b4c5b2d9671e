#include <gtest/gtest.h>

#include "posattn/kernels/cuda/device_info.h"

namespace posattn {
namespace {

TEST(DeviceInfo, DescribesTheDevice) {
  const DeviceInfo info = device_info();
  EXPECT_TRUE(info.built);
  ASSERT_TRUE(info.usable) << info.problem;
  EXPECT_EQ(info.problem, "");
  EXPECT_NE(info.name, "");
  EXPECT_GE(info.major, 8);
  EXPECT_GT(info.shared_bytes, 48 * 1024);
  EXPECT_GT(info.multiprocessors, 0);
  EXPECT_NE(info.driver, "");
  EXPECT_NE(info.toolkit, "");
  EXPECT_GT(info.memory_bytes, 0);
}

}  // namespace
}  // namespace posattn
