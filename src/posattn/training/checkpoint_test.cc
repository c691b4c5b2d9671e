#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/random.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/training/recording.h"
#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

void expect_same(const RunState& a, const RunState& b) {
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.schedule, b.schedule);
  EXPECT_EQ(a.validation_loss, b.validation_loss);
  EXPECT_EQ(a.best_validation_loss, b.best_validation_loss);
  EXPECT_EQ(a.optimiser.step, b.optimiser.step);
  EXPECT_TRUE(std::ranges::equal(a.parameters.values(), b.parameters.values()));
  EXPECT_TRUE(
      std::ranges::equal(a.optimiser.first_moment.values(), b.optimiser.first_moment.values()));
  EXPECT_TRUE(
      std::ranges::equal(a.optimiser.second_moment.values(), b.optimiser.second_moment.values()));
}

class CheckpointTest : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return folder_.path() / "checkpoint.safetensors"; }
  TemporaryFolder folder_;
};

TEST_F(CheckpointTest, SixEpochsEqualThreeAndThreeAfterACheckpoint) {
  for (const char* architecture : {"positional", "standard"}) {
    RunConfig config = small_run();
    config.architecture = architecture;
    posattn::Run straight(config, 1);
    while (!straight.finished()) straight.advance_epoch();
    {
      posattn::Run first(config, 1);
      for (int i = 0; i < 3; ++i) first.advance_epoch();
      save_checkpoint(file(), config, first.state());
    }
    posattn::Run second(config, 1);
    second.restore(load_checkpoint(file(), config));
    while (!second.finished()) second.advance_epoch();
    RunState expected = straight.state();
    expected.seconds = second.state().seconds;
    expect_same(second.state(), expected);
  }
}

TEST_F(CheckpointTest, TheStateBeforeTheFirstEpochCanBeSaved) {
  const RunConfig config = small_run();
  const posattn::Run run(config, 1);
  save_checkpoint(file(), config, run.state());  // the schedule's best loss is infinite
  expect_same(load_checkpoint(file(), config), run.state());
}

TEST_F(CheckpointTest, AnotherConfigurationIsRefused) {
  RunConfig config = small_run();
  save_checkpoint(file(), config, posattn::Run(config, 1).state());
  config.checkpoint_every = 99;
  EXPECT_NO_THROW(load_checkpoint(file(), config));
  config.epochs = 7;
  EXPECT_NO_THROW(load_checkpoint(file(), config));  // a run that goes on
  config.lr = 0.25;
  try {
    load_checkpoint(file(), config);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("there, 0.25 here"));
  }
}

TEST_F(CheckpointTest, EveryTruncationIsRefused) {
  const RunConfig config = small_run();
  save_checkpoint(file(), config, posattn::Run(config, 1).state());
  const std::string whole = read_text_file(file(), 1 << 24);
  for (std::size_t size = 0; size < whole.size(); size += 1 + whole.size() / 97) {
    std::ofstream(file(), std::ios::binary) << whole.substr(0, size);
    EXPECT_THROW(load_checkpoint(file(), config), Error) << size;
  }
}

TEST_F(CheckpointTest, NoFlippedBitIsTrainedOn) {
  const RunConfig config = small_run();
  const posattn::Run run(config, 1);
  std::vector<std::byte> bytes = checkpoint_bytes(config, run.state());
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  for (uint64_t seed = 0; seed < 400; ++seed) {
    RandomStream random(seed, Purpose::test_data, 0, 0);
    const bool of_header = seed % 2 == 0;
    const size_t first = of_header ? 0 : 8 + header;
    const size_t size = of_header ? 8 + header : bytes.size() - first;
    std::byte& byte = bytes[first + random.below(static_cast<uint32_t>(size))];
    const auto bit = static_cast<std::byte>(1U << random.below(8));
    byte ^= bit;
    try {
      expect_same(state_from_checkpoint(bytes, config, file()), run.state());
      EXPECT_TRUE(of_header) << seed;  // the checksum's key, or a space
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data) << error.what();
    }
    byte ^= bit;
  }
}

TEST_F(CheckpointTest, BadNumbersAndMissingFilesAreRefused) {
  const RunConfig config = small_run();
  save_checkpoint(file(), config, posattn::Run(config, 1).state());
  const std::string whole = read_text_file(file(), 1 << 24);
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::ofstream(file(), std::ios::binary) << text;
  };
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"step\":\"0\"", "\"step\":\"x\""},
           {"\"step\":\"0\"", "\"stop\":\"0\""},
           {"\"schedule.bad_epochs\":\"0\"", "\"schedule.bad_epochs\":\"-\""},
           {"\"posattn.checkpoint\":\"1\"", "\"posattn.checkpoint\":\"9\""},
           {"optimiser.first.", "optimiser.third."},
           {"decoding.weight", "decoding.height"}}) {
    replaced(from, to);
    EXPECT_THROW(load_checkpoint(file(), config), Error) << to;
  }
  std::filesystem::remove(file());
  EXPECT_THROW(load_checkpoint(file(), config), Error);
}

}  // namespace
}  // namespace posattn
