#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "posattn/base/error.h"
#include "posattn/tasks/dataset.h"
#include "posattn/tasks/k_hop.h"

namespace posattn {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int samples = 200;

Dataset made(const char* task, const char* axis = "c", double x = 1) {
  return make_dataset({.task = &find_task(task),
                       .length = 30,
                       .samples = samples,
                       .range = {},
                       .seed = 3,
                       .scale = x,
                       .axis = axis});
}

std::span<const int32_t> row(const Buffer<int32_t>& column, int sample) {
  return std::span<const int32_t>(column).subspan(sample * 30, 30);
}

TEST(KHopTask, IsANumberOfHopsAWordAndItsAnswers) {
  const Dataset set = made("k-hop");
  std::set<int32_t> hops, letters;
  for (int s = 0; s < samples; ++s) {
    const auto tokens = row(set.tokens, s), labels = row(set.labels, s);
    const auto word = tokens.subspan(1);
    hops.insert(tokens[0]);
    letters.insert(word.begin(), word.end());
    EXPECT_EQ(std::ranges::adjacent_find(word), word.end()) << "equal neighbours";
    const std::vector<int32_t> answers = k_hop(word, tokens[0]);
    EXPECT_EQ(labels[0], 14);  // undefined: there is no letter to hop from
    for (size_t i = 0; i < word.size(); ++i) {
      EXPECT_EQ(labels[i + 1], answers[i] < 0 ? 14 : answers[i]);
    }
  }
  EXPECT_THAT(hops, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(letters, ElementsAre(4, 5, 6, 7, 8));
}

TEST(KHopTask, AlongKOnlyDefinedPlacesCount) {
  const Dataset set = made("k-hop-sanford", "k", 4);
  int defined = 0;
  for (int s = 0; s < samples; ++s) {
    EXPECT_EQ(row(set.tokens, s)[0], 4);
    const std::vector<int32_t> answers = k_hop(row(set.tokens, s).subspan(1), 4);
    EXPECT_EQ(row(set.labels, s)[0], -1);
    for (size_t i = 0; i < answers.size(); ++i) EXPECT_EQ(row(set.labels, s)[i + 1], answers[i]);
    defined += static_cast<int>(std::ranges::count_if(answers, [](int32_t a) { return a >= 0; }));
  }
  EXPECT_GT(defined, 0);
}

TEST(KHopTask, UnseenLettersAreOthers) {
  for (const auto& [axis, x] : {std::pair{"k-unseen", 2.0}, std::pair{"letters", 1.0}}) {
    const Dataset set = made("k-hop", axis, x);
    for (int s = 0; s < samples; ++s) {
      EXPECT_THAT(row(set.tokens, s).subspan(1),
                  Each(testing::AllOf(testing::Ge(9), testing::Le(13))));
    }
  }
}

TEST(KHopTask, RefusesHopsThatItDoesNotHave) {
  try {
    made("k-hop", "k", 4);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("k = 4 for task k-hop"));
    EXPECT_THAT(error.expected(), HasSubstr("0 to 3"));
  }
}

TEST(KHopTask, IsWrittenAsHopsAndAWord) {
  const TaskText& text = *find_task("k-hop").text();
  std::vector<int32_t> tokens(6);
  const SampleRoom room{.values = {}, .tokens = tokens, .targets = {}, .labels = {}};
  EXPECT_EQ(text.length_of("2 abcaj"), 6);
  text.read("2 abcaj", 6, room);
  EXPECT_THAT(tokens, ElementsAre(2, 4, 5, 6, 4, 13));
  EXPECT_EQ(text.node(tokens[3], {}), "c");
  EXPECT_EQ(text.answer(14), "-");
  // The number of hops has no answer; what is no letter shows as one character, too.
  EXPECT_EQ(text.answers(std::vector<int32_t>{14, 14, 4, 13, 2, -1}), "-aj??");
  for (const char* bad :
       {"abcab", "4 abcab", "2 abca", "2 abcabc", "2 abcak", "2 abca\xff", "", " "}) {
    EXPECT_THROW(text.read(bad, 6, room), Error) << bad;
  }
}

TEST(Dataset, FreshSamplesGoOnWhereOthersEnded) {
  DatasetRequest request{
      .task = &find_task("sort"), .length = 4, .samples = 6, .range = {}, .seed = 1};
  const Dataset both = make_dataset(request);
  request.samples = 3;
  request.sets_before = 1;
  const Dataset second = make_dataset(request);
  EXPECT_TRUE(std::ranges::equal(second.inputs, std::span<const float>(both.inputs).last(12)));
}

}  // namespace
}  // namespace posattn
