// The numbers themselves: every sample, shuffle and initial weight comes from them, so a change
// here changes every recorded result.
#include "posattn/base/random.h"

#include <gtest/gtest.h>

#include <array>

namespace posattn {
namespace {

using Words = std::array<uint32_t, 6>;  // one block of four, and the next

Words first_words(RandomStream stream) {
  Words words;
  for (uint32_t& word : words) word = stream.next();
  return words;
}

// The first block is the answer that Random123 publishes for counter 0 and key 0.
TEST(Random, IsPhilox4x32WithTenRounds) {
  EXPECT_EQ(first_words(RandomStream(0, static_cast<Purpose>(0), 0, 0)),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8, 0xf8e4cca4, 0x5cb200db}));
}

TEST(Random, CountersOfEveryPurposeArePinned) {
  const struct {
    RandomStream stream;
    Words words;
  } golden[] = {
      {RandomStream(0, Purpose::train_data, 0, 0),
       {0x2dce73e5, 0x1348e23f, 0xfcf8e0ec, 0xa287aadb, 0xe9535be3, 0x510c4549}},
      {RandomStream(0, Purpose::train_data, 0, 1),
       {0x4f081e9e, 0xe8de2abc, 0x222577ad, 0x9a8742c4, 0x765adb89, 0xc0f52212}},
      {RandomStream(1, Purpose::validation_data, 0, 0),
       {0x2fe424f7, 0x6b5c693b, 0x46220365, 0x7d0e2e0a, 0x2ca4f974, 0x49f7d7d7}},
      {RandomStream(7, Purpose::test_data, 0x40400000, 5),
       {0x2f6824d3, 0x2cb5564a, 0xad2400bf, 0x7c3bfa1c, 0x6a9c1664, 0xba48f6f1}},
      {RandomStream(7, Purpose::shuffle, 12, 0),
       {0x49eb5b0e, 0x61e6416c, 0x33479e52, 0x0a4feb26, 0xad2ea297, 0x775e2ac0}},
      {RandomStream(3, Purpose::initial_values, 0, 11),
       {0xbea9878d, 0xa2701d55, 0x63bb2550, 0x93a284d7, 0xad6ffb01, 0xbc798196}},
      {RandomStream(0x123456789abcdef, Purpose::encoding, 0, 2),
       {0xf0a7cbd3, 0xb5d97ff2, 0xcb252e7a, 0x4a6b109e, 0x199ef735, 0x96f51179}},
      {RandomStream(3, Purpose::evaluation_data, 0xffffffff, 0xffffffff),
       {0x578660e6, 0xe03ee5bf, 0x5142a3f8, 0xba9c40ad, 0x9e872fd5, 0x0257423a}},
  };
  for (const auto& row : golden) EXPECT_EQ(first_words(row.stream), row.words);
}

TEST(Random, DrawsArePinned) {
  RandomStream random(5, Purpose::test_data, 0, 0);
  EXPECT_EQ(random.uniform(), 0.336137295f);
  EXPECT_EQ(random.uniform(), 0.980436206f);
  EXPECT_EQ(random.uniform(0.1f, 0.3f), 0.285173297f);
  EXPECT_EQ(random.uniform(-2, 2), -0.557497025f);
  for (const uint32_t number : {7u, 4u, 7u, 5u}) EXPECT_EQ(random.below(10), number);
  EXPECT_EQ(random.below(3'000'000'000), 1169734585u);
  EXPECT_EQ(random.below(3'000'000'000), 822931872u);
  // Logarithm and cosine may differ in the last bits between C libraries.
  EXPECT_NEAR(random.normal(), 0.29236201054389438, 1e-14);
  EXPECT_NEAR(random.normal(), 0.79833271715220611, 1e-14);
}

TEST(Random, BelowRejectsWhatWouldFavourSomeNumbers) {
  RandomStream random(5, Purpose::test_data, 0, 0);
  EXPECT_EQ(random.below(3'000'000'000), 2777599117u);  // from the third word of the stream
  EXPECT_EQ(random.next(), 1548875788u);
}

}  // namespace
}  // namespace posattn
