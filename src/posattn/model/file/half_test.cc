#include "posattn/model/file/half.h"

#include <gtest/gtest.h>

namespace posattn {
namespace {

TEST(Half, NumbersOfAllKinds) {
  EXPECT_EQ(half_to_float(0x3c00), 1.0f);
  EXPECT_EQ(half_to_float(0xc000), -2.0f);
  EXPECT_EQ(half_to_float(0x3555), 0.333251953125f);
  EXPECT_EQ(half_to_float(0x7bff), 65504.0f);
  EXPECT_EQ(half_to_float(0x0400), 0x1p-14f);  // the smallest with a full exponent
  EXPECT_EQ(half_to_float(0x0001), 0x1p-24f);
  EXPECT_EQ(half_to_float(0x0000), 0.0f);
  EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
  EXPECT_EQ(half_to_float(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(half_to_float(0x7e00)));
  EXPECT_EQ(bfloat_to_float(0x3f80), 1.0f);
  EXPECT_EQ(bfloat_to_float(0xc040), -3.0f);
}

}  // namespace
}  // namespace posattn
