#include <gtest/gtest.h>

#include <string>

#include "posattn/base/error.h"
#include "posattn/results/manifest.h"

namespace posattn {
namespace {

TEST(SettingsDifference, EmptyWhenTheSameUpToNeutralKeys) {
  EXPECT_EQ(settings_difference(R"({"a": 1, "b": "x"})", R"({"b":"x","a":1})", {}), "");
  EXPECT_EQ(settings_difference(R"({"a": 1, "b": 2})", R"({"a": 1, "b": 3})", {"b"}), "");
}

TEST(SettingsDifference, NamesWhatDiffers) {
  EXPECT_EQ(settings_difference(R"({"epochs": 2001})", R"({"epochs": 5})", {}),
            "epochs is 2001 there, 5 here");
  EXPECT_EQ(settings_difference(R"({"a": 1})", R"({"b": "x"})", {}),
            "a is 1 there, absent here; b is absent there, \"x\" here");
  EXPECT_EQ(settings_difference(R"({"a":1,"b":1,"c":1,"d":1,"e":1})",
                                R"({"a":2,"b":2,"c":2,"d":2,"e":2})", {}),
            "a is 1 there, 2 here; b is 1 there, 2 here; c is 1 there, 2 here; 2 more");
}

// What was recorded before there was a choice.
TEST(SettingsDifference, SettingsWithoutPrecisionAreThoseOfTheCpu) {
  const char* before = R"({"device": "auto", "lr": 1})";
  const auto with = [](const std::string& device, const std::string& precision) {
    return R"({"device": ")" + device + R"(", "lr": 1, "precision": ")" + precision + R"("})";
  };
  EXPECT_EQ(settings_difference(before, with("cpu", "fp32"), {}), "");
  EXPECT_EQ(settings_difference(before, before, {}), "");
  EXPECT_EQ(settings_difference(before, with("cuda", "tf32"), {}),
            R"(device is "cpu" there, "cuda" here; precision is "fp32" there, "tf32" here)");
}

TEST(SettingsDifference, RefusesWhatIsNoObject) {
  EXPECT_THROW(settings_difference("[1]", "{}", {}), Error);
  EXPECT_THROW(settings_difference("{", "{}", {}), Error);
}

}  // namespace
}  // namespace posattn
