#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/programs/form/sample_programs_test.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"
#include "posattn/report/steps/walk.h"

namespace posattn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

// Whole numbers: exact in fp32 too.
std::vector<double> whole_input(const StaticProgram& program) {
  std::vector<double> input(program.processors);
  for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<double>(5 * i % 7) - 2;
  return input;
}

Walk compared_walk(const Model& model, const StaticProgram& program,
                   const std::vector<double>& input) {
  Walk walk = program_walk(program, "", input);
  compare_with_network(model, program, input, walk);
  return walk;
}

TEST(ProgramWalk, ValuesAreTheTraceAndTheNetworkHoldsThem) {
  for (const testing::SampleProgram& sample : testing::sample_programs(7, 1)) {
    if (sample.weighted) continue;  // weights are rounded to fp32
    SCOPED_TRACE(sample.program.name);
    const std::vector<double> input = whole_input(sample.program);
    const Walk walk = compared_walk(compile(sample.program), sample.program, input);
    const std::vector<double> trace = trace_static(sample.program, input);
    std::vector<double> values;
    for (const WalkStep& step : walk.steps) {
      values.insert(values.end(), step.values.begin(), step.values.end());
      EXPECT_THAT(step.notes.back(), HasSubstr("the network holds the same numbers"));
    }
    EXPECT_EQ(values, trace);
    EXPECT_EQ(walk.columns.size(), sample.program.words.size());
  }
}

TEST(ProgramWalk, PaddedNetworksAreReadInTheirOwnColumns) {
  const StaticProgram program = library_program("cumulative-max-subarray", 5);
  const std::vector<double> input = whole_input(program);
  const CompileOptions options{.dense = true, .sizes = {40, 8, 64, 12}};
  const Walk walk = compared_walk(compile(program, options), program, input);
  for (const WalkStep& step : walk.steps) {
    EXPECT_THAT(step.notes.back(), HasSubstr("the network holds the same numbers"));
  }
}

TEST(ProgramWalk, SaysWhereTheNetworkDiffers) {
  const StaticProgram program = library_program("cumulative-sum", 4);
  Model model = compile(program);
  // In layer 1 whatever a unit adds to x counts a hundredth more.
  for (float& weight : model.parameters[names::of_layer(1, names::weight(names::mlp_map(1)))]) {
    weight *= 1.01F;
  }
  const std::vector<double> input = {1, 2, 3, 4};
  const Walk walk = compared_walk(model, program, input);
  ASSERT_EQ(walk.steps.size(), 3u);
  EXPECT_THAT(walk.steps[1].notes.back(), HasSubstr("layer 0: the network holds the same numbers"));
  EXPECT_THAT(walk.steps[2].notes.back(),
              HasSubstr("layer 1: the network differs by at most 0.1 (x of processor 3)"));
}

TEST(ProgramWalk, LinesAndReadsAreTheRounds) {
  const std::string text =
      "program two\nword x : int[0..9] = input\nreceive y = x from i - 1\nword z : int[0..18] = x "
      "+ "
      "y\noutput z\n";
  StaticProgram program = library_program("cumulative-sum", 2);
  const std::vector<double> input = {3, 4};
  const Walk walk = program_walk(program, text, input);
  EXPECT_EQ(walk.source.size(), 5u);
  ASSERT_EQ(walk.steps.size(), 2u);
  EXPECT_EQ(walk.steps[1].lines, program.rounds[0].lines);
  ASSERT_EQ(walk.steps[1].readings.size(), 1u);
  EXPECT_THAT(walk.steps[1].readings[0].names, ElementsAre("y"));
  EXPECT_TRUE(walk.steps[1].readings[0].reads[0].empty());
  EXPECT_THAT(walk.steps[1].readings[0].reads[1], ElementsAre(Pair(0, 1.0)));
}

TEST(ProgramWalk, WeightsComeStrongestFirst) {
  const StaticProgram program = library_program("matrix-vector", 6);
  const Walk walk = program_walk(program, "", whole_input(program));
  for (const auto& reads : walk.steps[1].readings[0].reads) {
    for (size_t k = 1; k < reads.size(); ++k) {
      EXPECT_GE(std::abs(reads[k - 1].second), std::abs(reads[k].second));
    }
  }
}

// Each sends its x to the place that d names; 9 is nobody's.
TEST(ProgramWalk, MessagesAreThoseOfThisInput) {
  ProgramBuilder builder("messages", 3);
  const Variable x = builder.input("x");
  const Variable d = builder.input("d", WordType::integer(0, 9));
  const StaticProgram program = builder.finish(builder.send("y", x, d));
  const std::vector<double> input = {5, 2, 6, 9, 7, 0};  // (x, d) of each processor
  const Walk walk = program_walk(program, "", input);
  ASSERT_EQ(walk.steps.size(), 2u);
  ASSERT_EQ(walk.steps[1].readings.size(), 1u);
  const auto& reads = walk.steps[1].readings[0].reads;
  EXPECT_THAT(reads[0], ElementsAre(Pair(2, 1.0)));
  EXPECT_TRUE(reads[1].empty());
  EXPECT_THAT(reads[2], ElementsAre(Pair(0, 1.0)));
  EXPECT_THAT(walk.facts, ElementsAre("input x: 5, 6, 7", "input d: 2, 9, 0", "output y: 7, 0, 5"));
}

TEST(ProgramWalk, RefusesWhatIsTooLargeOrNotThePrograms) {
  const StaticProgram large = library_program("cumulative-sum", 1025);
  const std::vector<double> zeros(1025);
  EXPECT_THROW(program_walk(large, "", zeros), Error);
  const StaticProgram program = library_program("sort", 4);
  const std::vector<double> input(4);
  for (const char* other : {"cumulative-sum", "min-sum"}) {
    try {
      compared_walk(compile(library_program(other, 4)), program, input);
      ADD_FAILURE() << other;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
    }
  }
}

}  // namespace
}  // namespace posattn
