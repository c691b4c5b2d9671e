#include "posattn/tasks/written_prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/tasks/dataset.h"
#include "posattn/tasks/mixed_prompt.h"
#include "posattn/text/small_tokeniser_test.h"

namespace posattn {
namespace {

Dataset samples_of(const Task& task, Purpose purpose, double c, int length = 8) {
  return make_dataset(
      {.task = &task,
       .length = length,
       .samples = 60,
       .range = purpose == Purpose::train_data ? training_range(5, false) : test_range(5, c, false),
       .seed = 3,
       .purpose = purpose,
       .scale = c,
       .axis = "c"});
}

// Every sample is a prompt, its answer and the end, and each node learns the next token.
void expect_texts(const Task& task, const Dataset& set, std::string_view symbols) {
  const WrittenAnswers& written = *task.written_answers();
  const Tokeniser& tokeniser = written.tokeniser();
  for (int64_t s = 0; s < set.samples; ++s) {
    const int nodes = set.shape.real_nodes;
    const std::span<const int32_t> tokens = std::span(set.tokens).subspan(s * nodes, nodes);
    const std::span<const int32_t> labels = std::span(set.labels).subspan(s * nodes, nodes);
    const auto end = std::ranges::find(labels, tokeniser.end()) - labels.begin();
    ASSERT_LT(end, nodes);
    for (int i = 0; i < nodes; ++i) {
      if (i != end) {
        EXPECT_EQ(labels[i], i < end ? tokens[i + 1] : -1);
      }
    }
    std::string line = tokeniser.decode(written.prompt(tokens));
    ASSERT_TRUE(line.ends_with('\n'));
    line.pop_back();
    const MixedPrompt prompt = read_prompt(line);
    EXPECT_NEAR(written.answer(tokens), prompt.answer(), 1e-4) << line;
    EXPECT_NE(symbols.find(prompt.symbols.front()), std::string_view::npos) << line;
  }
}

TEST(WrittenPrompt, ATextWithItsAnswer) {
  for (const char* name : {"mixed-min-written", "mixed-sum-written", "mixed-multitask-written"}) {
    const Task& task = find_task(name);
    expect_texts(task, samples_of(task, Purpose::train_data, 1), training_symbols.symbols);
    expect_texts(task, samples_of(task, Purpose::test_data, 1), test_symbols.symbols);
    expect_texts(task, samples_of(task, Purpose::test_data, 40, 12), test_symbols.symbols);
  }
}

TEST(WrittenPrompt, PricesOfMoreDigitsAreRefused) {
  EXPECT_NO_THROW(samples_of(find_task("mixed-min-written"), Purpose::test_data, 199));
  EXPECT_THROW(samples_of(find_task("mixed-min-written"), Purpose::test_data, 200), Error);
  EXPECT_NO_THROW(samples_of(find_task("mixed-sum-written"), Purpose::test_data, 49));
  EXPECT_THROW(samples_of(find_task("mixed-sum-written"), Purpose::test_data, 50), Error);
}

TEST(WrittenPrompt, AnswersAreReadOrNot) {
  const WrittenAnswers& written = *find_task("mixed-min-written").written_answers();
  EXPECT_EQ(written.parse("003.41"), 3.41);
  EXPECT_EQ(written.parse(" 12"), 12);
  EXPECT_EQ(written.parse("-1.5\n"), -1.5);
  for (const char* text : {"", "0.1.2", "003,41", "nan", "inf", "1e3", "Cat", "1 2", "-"}) {
    EXPECT_EQ(written.parse(text), std::nullopt) << text;
  }
}

TEST(WrittenPrompt, WithTheTokensOfAFolder) {
  const TemporaryFolder folder, other;
  const auto write = [](const TemporaryFolder& to, uint64_t seed) {
    const SmallTokeniserFiles files = small_tokeniser(150, " Cat0123456789,.", seed);
    write_file(to.path() / "vocab.json", files.vocabulary_text());
    write_file(to.path() / "merges.txt", files.merges_text());
  };
  write(folder, 1);
  write(other, 2);
  offer_gpt2_tasks(folder.path());
  for (const char* name : {"mixed-min-gpt2", "mixed-sum-gpt2", "mixed-multitask-gpt2"}) {
    const Task& task = find_task(name);
    EXPECT_EQ(task.shape(8).vocabulary, 256 + 150 + 1);
    expect_texts(task, samples_of(task, Purpose::train_data, 1), training_symbols.symbols);
    expect_texts(task, samples_of(task, Purpose::test_data, 10), test_symbols.symbols);
  }
  EXPECT_NO_THROW(offer_gpt2_tasks(folder.path()));
  EXPECT_THROW(offer_gpt2_tasks(other.path()), Error);
}

}  // namespace
}  // namespace posattn
