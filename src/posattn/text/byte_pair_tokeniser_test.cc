#include "posattn/text/byte_pair_tokeniser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/text/small_tokeniser_test.h"

namespace posattn {
namespace {

using testing::HasSubstr;

constexpr std::string_view often = " abt\xc3\xa9\xce\xb1";

BytePairTokeniser tokeniser_of(const SmallTokeniserFiles& files) {
  return {files.vocabulary_text(), files.merges_text(), "folder"};
}

// This follows GPT-2's description: look at all neighbours, take the pair of the lowest rank, merge
// it everywhere from left to right, look again.
std::vector<int32_t> merged_plainly(const SmallTokeniserFiles& files, std::string_view piece) {
  std::vector<std::string> parts;
  for (const char c : piece) parts.push_back(bytes_to_characters(std::string(1, c)));
  for (;;) {
    size_t best = files.merges.size();
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = std::ranges::find(files.merges, std::pair(parts[i], parts[i + 1]));
      best = std::min<size_t>(best, found - files.merges.begin());
    }
    if (best == files.merges.size()) break;
    const auto& [left, right] = files.merges[best];
    std::vector<std::string> next;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i + 1 < parts.size() && parts[i] == left && parts[i + 1] == right) {
        next.push_back(left + right);
        ++i;
      } else {
        next.push_back(parts[i]);
      }
    }
    parts = next;
  }
  std::vector<int32_t> tokens;
  for (const std::string& part : parts) tokens.push_back(files.vocabulary.at(part));
  return tokens;
}

std::string random_text(RandomStream& random, bool any_character) {
  static const std::vector<std::string> usual = {"a", "b", "t", " ", "a", "\u00e9", "\u03b1", "ab"};
  std::string text;
  const uint32_t length = random.below(60);
  for (uint32_t i = 0; i < length; ++i) {
    if (!any_character || random.below(2) == 0) {
      text += usual[random.below(usual.size())];
      continue;
    }
    uint32_t c = random.below(0x110000);
    if (random.below(2) == 0) c %= 0x300;
    if (c >= 0xd800 && c < 0xe000) c = 0x3000;
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += {static_cast<char>(0xc0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3f))};
    } else if (c < 0x10000) {
      text += {static_cast<char>(0xe0 | (c >> 12)), static_cast<char>(0x80 | ((c >> 6) & 0x3f)),
               static_cast<char>(0x80 | (c & 0x3f))};
    } else {
      text += {static_cast<char>(0xf0 | (c >> 18)), static_cast<char>(0x80 | ((c >> 12) & 0x3f)),
               static_cast<char>(0x80 | ((c >> 6) & 0x3f)), static_cast<char>(0x80 | (c & 0x3f))};
    }
  }
  return text;
}

TEST(BytePairTokeniser, MergesAsThePlainDescriptionSays) {
  const WordPattern pattern;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const SmallTokeniserFiles files = small_tokeniser(5 + 10 * static_cast<int>(seed), often, seed);
    const BytePairTokeniser tokeniser = tokeniser_of(files);
    RandomStream random(seed, Purpose::test_data, 0, 0);
    for (int trial = 0; trial < 20; ++trial) {
      const std::string text = random_text(random, false);
      std::vector<int32_t> expected;
      for (const std::string_view piece : pattern.split(text)) {
        const std::vector<int32_t> tokens = merged_plainly(files, piece);
        expected.insert(expected.end(), tokens.begin(), tokens.end());
      }
      EXPECT_EQ(tokeniser.encode(text), expected) << seed << " '" << text << "'";
    }
  }
}

TEST(BytePairTokeniser, EveryTextComesBack) {
  const BytePairTokeniser tokeniser = tokeniser_of(small_tokeniser(100, often, 7));
  RandomStream random(3, Purpose::test_data, 0, 0);
  for (int trial = 0; trial < 500; ++trial) {
    const std::string text = random_text(random, true);
    EXPECT_EQ(tokeniser.decode(tokeniser.encode(text)), text);
  }
}

TEST(BytePairTokeniser, LongWordsTakeNoTimeSquared) {
  const BytePairTokeniser tokeniser = tokeniser_of(small_tokeniser(100, "ab", 7));
  const std::string word(1'000'000, 'a');
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(tokeniser.decode(tokeniser.encode(word)), word);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(BytePairTokeniser, ReadsAFolder) {
  const TemporaryFolder folder;
  const SmallTokeniserFiles files = small_tokeniser(30, often, 1);
  write_file(folder.path() / "vocab.json", files.vocabulary_text());
  EXPECT_THROW(read_byte_pair_tokeniser(folder.path()), Error);
  write_file(folder.path() / "merges.txt", files.merges_text());
  const BytePairTokeniser tokeniser = read_byte_pair_tokeniser(folder.path());
  EXPECT_EQ(tokeniser.size(), 256 + 30 + 1);
  EXPECT_EQ(tokeniser.end(), 286);
}

struct BadFiles {
  const char* name;
  std::function<void(SmallTokeniserFiles&)> change;
  const char* problem;
};

TEST(BytePairTokeniser, BrokenFilesAreRefusedInOneSentence) {
  const std::vector<BadFiles> cases = {
      {"unknown part", [](auto& f) { f.merges.emplace_back("xyz", "a"); }, "nothing makes 'xyz'"},
      {"a part that a later line makes",
       [](auto& f) { f.merges.insert(f.merges.begin(), f.merges.back()); }, "nothing makes"},
      {"unknown result", [](auto& f) { f.merges.emplace_back("x", "y"); },
       "'xy' is not in the vocabulary"},
      {"a merge twice", [](auto& f) { f.merges.push_back(f.merges.back()); },
       "is made a second time"},
      {"one part", [](auto& f) { f.merges.emplace_back("a", ""); }, "merges.txt:202: 'a '"},
      {"three parts", [](auto& f) { f.merges.emplace_back("a", "b c"); }, "'a b c'"},
      {"not UTF-8", [](auto& f) { f.merges.emplace_back("a", "\xff"); }, "is not UTF-8"},
      {"a number twice", [](auto& f) { f.vocabulary["a"] = f.vocabulary["b"]; },
       "both have the number"},
      {"a number too large", [](auto& f) { f.vocabulary["a"] = 100000; }, "has the number 100000"},
      {"a negative number", [](auto& f) { f.vocabulary["a"] = -1; }, "has the number -1"},
      {"no token for a byte",
       [](auto& f) {
         f.vocabulary["zz"] = f.vocabulary["a"];
         f.vocabulary.erase("a");
       },
       "no token for byte 0x61 ('a')"},
      {"no end",
       [](auto& f) {
         f.vocabulary["zz"] = f.vocabulary["<|endoftext|>"];
         f.vocabulary.erase("<|endoftext|>");
       },
       "no token '<|endoftext|>'"},
      {"characters that are no bytes",
       [](auto& f) { f.vocabulary["\u20ac"] = static_cast<int>(f.vocabulary.size()); },
       "does not stand for bytes"},
  };
  for (const BadFiles& bad : cases) {
    SmallTokeniserFiles files = small_tokeniser(200, often, 2);
    bad.change(files);
    try {
      tokeniser_of(files);
      ADD_FAILURE() << bad.name << ": accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_THAT(error.problem(), HasSubstr(bad.problem)) << bad.name;
      EXPECT_THAT(error.problem(), HasSubstr("folder/")) << bad.name;
    }
  }
  for (const char* text :
       {"", "[]", "{}", "{\"a\": 0, \"a\": 1}", "{\"a\": \"b\"}", "{\"\xff\": 0}"}) {
    EXPECT_THROW(BytePairTokeniser(text, "", "folder"), Error) << text;
  }
}

TEST(BytePairTokeniser, IsTheSameFromItsVocabulary) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    SmallTokeniserFiles files = small_tokeniser(100, often, seed);
    if (seed == 1) std::swap(files.vocabulary["a"], files.vocabulary["<|endoftext|>"]);
    const BytePairTokeniser first = tokeniser_of(files);
    const VocabularyText& text = *first.vocabulary();
    const BytePairTokeniser second(text);
    EXPECT_EQ(*second.vocabulary(), text);
    EXPECT_EQ(second.end(), first.end());
    RandomStream random(seed, Purpose::test_data, 0, 0);
    for (int trial = 0; trial < 50; ++trial) {
      const std::string words = random_text(random, true);
      EXPECT_EQ(second.encode(words), first.encode(words));
      EXPECT_EQ(second.decode(first.encode(words)), words);
    }
  }
}

TEST(BytePairTokeniser, AVocabularyThatIsNoneIsRefused) {
  const BytePairTokeniser good = tokeniser_of(small_tokeniser(20, often, 1));
  const VocabularyText& text = *good.vocabulary();
  const auto refused = [](const std::string& tokens, const std::string& merges) {
    try {
      const BytePairTokeniser bad(VocabularyText{tokens, merges});
      return std::string("accepted");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      return error.problem();
    }
  };
  EXPECT_THAT(refused(text.tokens + "a\n", text.merges), HasSubstr("vocabulary: token 'a' twice"));
  EXPECT_THAT(refused(text.tokens + "\n", text.merges), HasSubstr("does not stand for bytes"));
  EXPECT_THAT(refused(text.tokens + "\xff\n", ""), HasSubstr("does not stand for bytes"));
  EXPECT_THAT(refused("", ""), HasSubstr("no token for byte 0x00"));
  EXPECT_THAT(refused(std::string(3 << 20, '\n'), ""), HasSubstr("too many tokens"));
  EXPECT_THAT(refused(text.tokens, "a xyz\n"), HasSubstr("merges:1: nothing makes 'xyz'"));
  EXPECT_THAT(refused(text.tokens, text.merges + text.merges), HasSubstr("made a second time"));
}

// GPT-2's own files are not part of the project; where a folder of them is named, a few words whose
// tokens are well known.
TEST(BytePairTokeniser, KnowsGpt2sOwnWords) {
  const char* folder = std::getenv("POSATTN_GPT2_FOLDER");
  if (folder == nullptr) GTEST_SKIP() << "POSATTN_GPT2_FOLDER names no folder of GPT-2's files";
  const BytePairTokeniser tokeniser = read_byte_pair_tokeniser(folder);
  EXPECT_EQ(tokeniser.size(), 50257);
  EXPECT_EQ(tokeniser.end(), 50256);
  EXPECT_EQ(tokeniser.encode("Hello world"), (std::vector<int32_t>{15496, 995}));
  EXPECT_EQ(tokeniser.encode("hello 123 \u00e9"), (std::vector<int32_t>{31373, 17031, 38251}));
}

}  // namespace
}  // namespace posattn
