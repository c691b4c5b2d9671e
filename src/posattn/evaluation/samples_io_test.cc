#include "posattn/evaluation/samples_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/evaluation/predict.h"
#include "posattn/evaluation/table.h"

namespace posattn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A model as a file gives it; its weights do not matter here.
Model k_hop_model(int length, bool variable_length = false) {
  ModelSpec spec;
  spec.real_nodes = length;
  spec.data_columns = 0;
  spec.vocabulary = spec.output_columns = 16;
  spec.loss = Loss::cross_entropy;
  spec = resolve(spec);
  return {spec,
          Parameters<float>(spec),
          {.task = "k-hop",
           .length = length,
           .variable_length = variable_length,
           .range = 2,
           .integers = false,
           .notes = {}}};
}

void expect_error(std::string_view bytes, const Model& model, const std::string& problem,
                  const std::string& expected) {
  try {
    parse_samples(bytes, "words.txt", model);
    ADD_FAILURE() << "accepted: " << bytes;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_THAT(error.problem(), HasSubstr(problem));
    EXPECT_THAT(error.expected(), HasSubstr(expected));
  }
}

TEST(Samples, LinesOfText) {
  const Model model = k_hop_model(4);
  for (const char* bytes : {"2 aba\n0 jca\n", "2 aba\n0 jca",
                            "\xef\xbb\xbf"
                            "2 aba\r\n0 jca\r\n"}) {
    const ReadSamples samples = parse_samples(bytes, "words.txt", model);
    EXPECT_THAT(samples.lines, ElementsAre("2 aba", "0 jca"));
    EXPECT_EQ(samples.table.rows, 2);
    EXPECT_EQ(samples.table.columns, 4);
    EXPECT_THAT(samples.table.whole, ElementsAre(2, 4, 5, 4, 0, 13, 6, 4));
    const Batch batch = samples_of(model, samples.table, "words.txt");
    EXPECT_EQ(batch.samples, 2);
    EXPECT_THAT(
        node_texts(*text_of(model),
                   {.inputs = {}, .samples = 1, .real_nodes = 4, .tokens = batch.tokens.first(4)}),
        ElementsAre("2", "a", "b", "a"));
  }
}

TEST(Samples, ContentTellsTextFromTables) {
  const Model model = k_hop_model(4);
  EXPECT_EQ(parse_samples("2 aba\n", "standard input", model).lines.size(), 1u);
  for (const char* table : {"2,4,5,4\n", "2 4 5 4\n", "# comment\nk,x,y,z\n2,4,5,4\n"}) {
    const ReadSamples samples = parse_samples(table, "standard input", model);
    EXPECT_TRUE(samples.lines.empty());
    EXPECT_THAT(samples.table.whole, ElementsAre(2, 4, 5, 4));
    EXPECT_EQ(parse_samples(to_npy(samples.table), "x", model).table.whole, samples.table.whole);
  }
  // Its name says what it is.
  expect_error("2,4,5,4\n", model, "words.txt:1: '2,4,5,4'", "the number of hops and a word");
}

TEST(Samples, BadLinesAreNamed) {
  const Model model = k_hop_model(4);
  expect_error("", model, "words.txt: no text", "one sample per line");
  expect_error("2 aba\n\n2 aba\n", model, "words.txt:2: a blank line", "2 abcab");
  expect_error("2 aba\n  \r\n", model, "words.txt:2: a blank line", "2 abcab");
  expect_error(
      "2 aba\n2 a\xff"
      "a\n",
      model, "words.txt:2: byte 4 (0xff) is not UTF-8", "UTF-8");
  expect_error("4 aba\n", model, "words.txt:1: 4 hops", "0 to 3");
  expect_error("2 abz\n", model, "words.txt:1: 'z' in a word", "a letter from a to j");
  expect_error("2 ab\u00e9\n", model, "'\u00e9' in a word", "a letter from a to j");
  expect_error("2 abab\n", model, "a word of 4 letters", "3, as in training");
  expect_error("2 a\n", model, "a word of 1 letter", "3, as in training");
  expect_error("aba\n", model, "words.txt:1: 'aba'", "the number of hops and a word");
}

TEST(Samples, SeveralLengths) {
  const Model model = k_hop_model(5, true);
  EXPECT_EQ(parse_samples("2 aba\n1 bab\n", "words.txt", model).table.columns, 4);
  EXPECT_EQ(parse_samples("2 abab\n", "words.txt", model).table.columns, 5);
  expect_error("2 aba\n1 ba\n", model, "words.txt:2: a sample of length 3", "4, as in line 1");
  expect_error("2 ababa\n", model, "a sample of length 6", "2 to 5");
}

TEST(Samples, OnlyModelsOfTheTaskHaveText) {
  Model model = k_hop_model(4);
  EXPECT_NE(text_of(model), nullptr);
  model.spec.vocabulary = 15;
  EXPECT_EQ(text_of(model), nullptr);
  model.origin.task = "sort";
  EXPECT_EQ(text_of(model), nullptr);
  model.origin.task = "somebody's own";
  EXPECT_EQ(text_of(model), nullptr);
}

TEST(Samples, OutputsThatAreRead) {
  ModelSpec spec;
  spec.output_columns = 2;
  const std::vector<float> outputs{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};  // two samples
  EXPECT_EQ(read_outputs(spec, outputs, 3), outputs);
  spec.read_nodes = 1;
  EXPECT_THAT(read_outputs(spec, outputs, 3), ElementsAre(0, 1, 6, 7));
}

}  // namespace
}  // namespace posattn
