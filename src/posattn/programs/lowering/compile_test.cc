#include "posattn/programs/lowering/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/evaluation/evaluate.h"
#include "posattn/evaluation/predict.h"
#include "posattn/model/blocks/reference_network.h"
#include "posattn/model/network.h"
#include "posattn/model/routed/routed_network.h"
#include "posattn/programs/form/sample_programs_test.h"
#include "posattn/programs/language/language.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;
using testing::sample_programs;
using testing::SampleProgram;
using testing::sort_program;
using testing::sum_program;

// Rows of numbers that are the same in float and double.
std::vector<float> random_rows(const StaticProgram& program, int64_t count, bool integers) {
  RandomStream random(7, Purpose::test_data, 1, static_cast<uint32_t>(program.processors));
  std::vector<float> rows(count * program.processors);
  for (float& x : rows) {
    x = integers ? static_cast<float>(random.below(19)) - 9 : random.uniform(-4, 4);
  }
  return rows;
}

std::vector<double> widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

std::vector<float> outputs_of(const Model& model, const std::vector<float>& rows, int64_t count,
                              NetworkOptions options) {
  std::vector<float> outputs(rows.size());
  const Batch batch{.inputs = rows, .samples = count, .real_nodes = model.spec.real_nodes};
  Network(model.spec, options).forward(model.parameters, batch, outputs);
  return outputs;
}

// Largest difference, relative to the largest entry (at least 1).
template <class A>
double difference(const A& ours, const std::vector<double>& expected) {
  double largest = 1, worst = 0;
  for (const double x : expected) largest = std::max(largest, std::abs(x));
  EXPECT_EQ(ours.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(ours[i]) - expected[i]));
  }
  return worst / largest;
}

TEST(Compile, RoutesDenseWeightsAndTheReferenceComputeTheProgram) {
  constexpr int64_t count = 21;  // more than a tile
  for (int n = 1; n <= 20; ++n) {
    for (const SampleProgram& sample : sample_programs(n, 3)) {
      SCOPED_TRACE(sample.program.name + " n = " + std::to_string(n));
      const std::vector<float> rows = random_rows(sample.program, count, sample.integers);
      const std::vector<double> rows64 = widened(rows);
      const auto expected = run_static<double>(sample.program, rows64, count);
      const NetworkPlan plan = plan_network(sample.program);
      const Model routed = compile(plan), dense = compile(plan, {.dense = true});
      const double in_float = sample.integers ? 0 : 2e-6;
      const double in_double = sample.integers ? 0 : sample.weighted ? 2e-6 : 1e-14;

      EXPECT_LE(difference(outputs_of(routed, rows, count, {.threads = 2}), expected), in_float);
      EXPECT_LE(difference(outputs_of(dense, rows, count, {.path = Path::plain}), expected),
                in_float);
      std::vector<double> outputs(rows.size());
      RoutedNetwork<double>(routed.spec, routed.parameters)
          .forward(rows64.data(), count, outputs.data());
      EXPECT_LE(difference(outputs, expected), in_double);
      for (const Model& model : {routed, dense}) {
        const ReferenceBatch batch{
            .inputs = std::span(rows64).first(2 * n), .samples = 2, .real_nodes = n};
        const auto reference = reference_forward(model.spec, to_double(model.parameters), batch);
        EXPECT_LE(difference(reference, {expected.begin(), expected.begin() + 2 * n}), in_double);
      }
    }
  }
}

TEST(Compile, SizesToEmbedInChangeNothing) {
  const StaticProgram program = testing::max_subarray_program(6);
  const std::vector<float> rows = random_rows(program, 5, false);
  const auto expected = outputs_of(compile(program), rows, 5, {});
  const Model larger =
      compile(program, {.sizes = {.width = 64, .heads = 8, .hidden = 64, .depth = 20}});
  EXPECT_EQ(larger.spec.width, 64);
  EXPECT_EQ(larger.spec.depth, 20);
  EXPECT_EQ(outputs_of(larger, rows, 5, {}), expected);
}

TEST(Compile, TheScratchNodeStaysExactlyZero) {
  for (const SampleProgram& sample : sample_programs(9, 4)) {
    SCOPED_TRACE(sample.program.name);
    for (const bool dense : {false, true}) {
      Model model = compile(sample.program, {.dense = dense});
      const int n = model.spec.real_nodes;
      const std::vector<float> rows = random_rows(sample.program, 1, sample.integers);
      const std::vector<double> rows64 = widened(rows);
      // The last layer hands every node what the scratch node holds before it.
      const int last = model.spec.depth - 1;
      const auto tensor = [&](const char* name) {
        return model.parameters["transformer_layers." + std::to_string(last) + "." + name];
      };
      const int64_t width = model.spec.width;
      std::vector<float> seen;
      for (int64_t column = 0; column < width; ++column) {
        for (const char* name : {"attn.v_proj.weight", "mlp.mlp.0.weight", "mlp.mlp.2.weight",
                                 dense ? "attn.qk_proj.weight" : "attn.routes"}) {
          std::ranges::fill(tensor(name), 0.0f);
        }
        tensor("attn.v_proj.weight")[column] = 1;
        tensor("mlp.mlp.0.weight")[width] = 1;
        tensor("mlp.mlp.0.weight")[2 * width + width] = -1;
        tensor("mlp.mlp.2.weight")[0] = 1;
        tensor("mlp.mlp.2.weight")[1] = -1;
        std::ranges::fill(model.parameters["decoding.weight"], 0.0f);
        model.parameters["decoding.weight"][0] = 1;
        if (dense) {
          const int64_t key = model.spec.key_size();
          const auto scores = tensor("attn.qk_proj.weight");
          for (int64_t j = 0; j < key; ++j) {
            scores[n * key + j] = 1e5f;       // queries: the scratch node for all
            scores[(key + j) * key + j] = 1;  // keys
          }
        } else {
          std::ranges::fill(tensor("attn.routes"), static_cast<float>(n));
        }
        for (const float x : outputs_of(model, rows, 1, {.path = Path::plain})) EXPECT_EQ(x, 0);
        const auto reference = reference_forward(model.spec, to_double(model.parameters),
                                                 {.inputs = rows64, .samples = 1, .real_nodes = n});
        for (const double x : reference) EXPECT_EQ(x, 0);
      }
    }
  }
}

TEST(Compile, AttentionIsTheSameBothWays) {
  for (const SampleProgram& sample : sample_programs(7, 5)) {
    SCOPED_TRACE(sample.program.name);
    const std::vector<float> zeros(7);
    const Batch batch{.inputs = zeros, .samples = 1, .real_nodes = 7};
    const Model routed = compile(sample.program), dense = compile(sample.program, {.dense = true});
    const auto by_routes = Network(routed.spec).attention(routed.parameters, batch);
    const auto by_scores = Network(dense.spec).attention(dense.parameters, batch);
    ASSERT_EQ(by_routes.size(), by_scores.size());
    for (size_t i = 0; i < by_routes.size(); ++i) {
      // A saturated softmax is one-hot to the last bit.
      EXPECT_NEAR(by_routes[i], by_scores[i], sample.weighted ? 2e-6 : 0);
    }
  }
}

TEST(Compile, ModelsAreEvaluatedLikeAnyOther) {
  for (const bool dense : {false, true}) {
    const Model model = compile(sort_program(13), {.dense = dense});
    EXPECT_EQ(model.origin.task, "sort");
    EXPECT_EQ(model.origin.length, 13);
    EXPECT_EQ(model.origin.notes.at("compiled"), dense ? "dense sharpness 1024" : "routes");
    const auto results = evaluate({.model = &model,
                                   .task = &find_task("sort"),
                                   .values = {1, 10, 1000},
                                   .samples = 200,
                                   .threads = 2});
    for (const double c : {1, 10, 1000}) {
      const auto value = [&](const char* metric) {
        return find_value(results.rows, {.axis = "c", .x = c, .metric = metric}).value();
      };
      EXPECT_LT(value("mse_over_c2"), 1e-13) << "c = " << c;
      EXPECT_EQ(value("accuracy"), 1);
    }
    std::vector<float> row(13), sorted;
    for (int i = 0; i < 13; ++i) row[i] = static_cast<float>((7 * i) % 13);
    for (int i = 0; i < 13; ++i) sorted.push_back(static_cast<float>(i));
    EXPECT_EQ(predict_rows(model, row, 1), sorted);
  }
}

// Products of weights round, where one that shuts a selection meets one that passes a value.
TEST(Compile, DenseModelsAreEvaluatedAsTheyAreWritten) {
  int folded_differs = 0;
  for (int n = 2; n <= 8; ++n) {
    RandomStream random(6, Purpose::test_data, 0, n);
    ProgramBuilder builder("chosen", n);
    const Variable x = builder.input("x");
    std::vector<double> keys(n);
    for (double& key : keys) key = random.below(7);
    const Variable key = builder.word("key", WordType::integer(0, 6), keys);
    for (int round = 0; round < 3; ++round) {
      const Variable y = builder.receive("y", x, [](int i) { return i - 1; });
      builder.set(x, select(at_least(builder[key], constant_value(3)), add(builder[x], builder[y]),
                            subtract(builder[x], builder[y])));
    }
    const StaticProgram program = builder.finish(x);
    const Model model = compile(program, {.dense = true});
    const std::vector<float> rows = random_rows(program, 5, true);
    EXPECT_EQ(predict_rows(model, rows, 5), run_static<float>(program, rows, 5));
    if (outputs_of(model, rows, 5, {.path = Path::folded}) != predict_rows(model, rows, 5)) {
      ++folded_differs;
    }
  }
  EXPECT_GE(folded_differs, 4);
}

// A softmax that is not saturated leaves an error in every layer.
TEST(Compile, SharpnessDecidesWhetherDenseAttentionIsExact) {
  const StaticProgram program = sort_program(32);
  std::vector<float> rows(32);
  for (int i = 0; i < 32; ++i) rows[i] = static_cast<float>((11 * i) % 32 * 50);
  const std::vector<double> rows64 = widened(rows);
  const auto expected = run_static<double>(program, rows64, 1);
  const auto error = [&](double sharpness) {
    const Model model = compile(program, {.dense = true, .sharpness = sharpness});
    return difference(outputs_of(model, rows, 1, {.path = Path::plain}), expected);
  };
  EXPECT_GT(error(12), 1e-3);
  EXPECT_GT(error(20), 1e-7);
  EXPECT_EQ(error(104), 0);
  EXPECT_EQ(error(1024), 0);
}

TEST(Compile, RefusesWhatCannotBe) {
  const auto message = [](const CompileOptions& options, int n) -> std::string {
    try {
      compile(sum_program(n), options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({.dense = true}, 128), "");
  EXPECT_THAT(message({.dense = true}, 129), HasSubstr("leave out --dense"));
  EXPECT_THAT(message({.sharpness = 0}, 4), HasSubstr("sharpness 0"));
  EXPECT_THAT(message({.sharpness = NAN}, 4), HasSubstr("sharpness nan"));
  EXPECT_THAT(message({.sizes = {.depth = 1}}, 9), HasSubstr("at least 4"));
}

TEST(Compile, RefusesNumbersBeyondSinglePrecision) {
  ProgramBuilder program("huge", 4);
  const Variable x = program.input("x");
  program.set(x, scale(1e300, program[x]));
  EXPECT_THROW(compile(program.finish(x)), Error);
}

// A large factor of the program must not pass for one that shuts a selection.
TEST(Compile, LargeFactorsOfWholeNumbersCount) {
  ProgramBuilder program("large", 4);
  const Variable x = program.input("x", WordType::integer(0, 3));
  const Variable y = program.word("y", WordType::integer(0, int64_t{1} << 40));
  program.set(y, scale(1073741825, program[x]));
  EXPECT_GE(plan_network(program.finish(y)).largest_integer_sum, 3.0 * 1073741825);
}

// Numbers that are only handed on must fit, too.
TEST(Compile, WholeNumbersMustFitWithoutRounds) {
  const auto largest = [](int64_t high) {
    ProgramBuilder program("hand-on", 4);
    const Variable x = program.input("x", WordType::integer(0, high));
    return plan_network(program.finish(x));
  };
  EXPECT_NO_THROW(compile(largest((1 << 24) - 1)));
  EXPECT_THROW(compile(largest(1 << 24)), Error);
  EXPECT_EQ(largest(1 << 25).largest_integer_place, "word 'x'");
}

TEST(Compile, RefusesChoicesOfNumbersThatCannotBeShutOut) {
  const auto chosen = [](double number) {
    ProgramBuilder program("large", 2);
    const Variable x = program.input("x");
    const Variable bit = program.word("bit", WordType::bit(), {0, 1});
    program.set(x, select(program[bit], constant_value(number), program[x]));
    return program.finish(x);
  };
  EXPECT_NO_THROW(compile(chosen(0.5)));
  EXPECT_THROW(compile(chosen(1e19)), Error);
  EXPECT_THROW(compile(chosen(-1e19)), Error);
}

// What shuts a unit must not change the scale of what passes it.
TEST(Compile, ChoicesOfTinyNumbersAreExact) {
  ProgramBuilder program("tiny", 2);
  const Variable bit = program.word("bit", WordType::bit(), {0, 1});
  const Variable x = program.input("x");
  program.set(x, select(program[bit], program[x], scale(3, program[x])));
  const std::vector<float> rows = {1.2345e-30f, -1.2345e-30f};
  EXPECT_EQ(predict_rows(compile(program.finish(x)), rows, 1),
            (std::vector<float>{3 * rows[0], rows[1]}));
}

TEST(Compile, TasksThatDoNotFitAreLeftOut) {
  ProgramBuilder program("wide", 4, 6);
  program.set_task("sort");
  const Variable x = program.input("x");
  const Model model = compile(program.finish(x));
  EXPECT_EQ(model.origin.task, "");
  EXPECT_EQ(model.spec.real_nodes, 6);
  EXPECT_EQ(model.spec.depth, 1);
}

TEST(Compile, NotesKeepTheProgramsText) {
  const Model model = compile(sum_program(3), {.program = "program cumulative-sum"});
  EXPECT_EQ(model.origin.notes.at("program"), "program cumulative-sum");
  EXPECT_FALSE(compile(sum_program(3)).origin.notes.contains("program"));
}

using ::testing::HasSubstr;

std::string overflow(const StaticProgram& program, const std::vector<double>& input) {
  try {
    run_network(compile(program), program, input, 1);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error.what();
  }
  return "";
}

TEST(RunNetwork, ComputesWhatTheProgramDoes) {
  const StaticProgram sort = library_program("sort", 3);
  EXPECT_EQ(run_network(compile(sort), sort, std::vector<double>{3, 1, 2, 1e38, 0, -1e38}, 2),
            (std::vector<double>{1, 2, 3, -1e38f, 0, 1e38f}));
}

TEST(RunNetwork, NumbersBeyondItsArithmeticAreRefused) {
  const StaticProgram sort = library_program("sort", 3);
  EXPECT_THAT(overflow(sort, {1, 1e39, 2}), HasSubstr("1e+39 of 'x' on processor 1"));
  EXPECT_THAT(overflow(sort, {3e38, -3e38, 1}),
              HasSubstr("an overflow in the network of program 'sort'"));
  const StaticProgram sums = library_program("cumulative-sum", 3);
  EXPECT_THAT(overflow(sums, {3e38, 3e38, 1}), HasSubstr("up to 3.4e+38"));
}

}  // namespace

}  // namespace posattn
