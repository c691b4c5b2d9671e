#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <numbers>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/random.h"
#include "posattn/evaluation/predict.h"
#include "posattn/programs/checking/program_task.h"
#include "posattn/programs/form/definition.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"
#include "posattn/programs/lowering/run_plan_test.h"
#include "posattn/programs/messages/route_messages.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

using Values = std::vector<double>;

std::vector<int> lengths() {
  std::vector<int> list(33);
  std::iota(list.begin(), list.end(), 1);
  list.insert(list.end(), {64, 100, 128});
  return list;
}

// Numbers of a float, so that tasks take them as they are; some of them equal.
Values random_values(int count, uint32_t variant) {
  RandomStream random(3, Purpose::test_data, variant, static_cast<uint32_t>(count));
  Values values;
  for (int i = 0; i < count; ++i) {
    const bool repeat = i > 0 && random.below(8) == 0;
    values.push_back(repeat ? values.back() : random.uniform(-2, 2));
  }
  return values;
}

int ceil_log2(int n) {
  int t = 0;
  while ((1 << t) < n) ++t;
  return t;
}

// What programs without a task compute, by plain loops.
Values shortest_distances(const Values& x) {
  const auto n = static_cast<int>(x.size());
  const int chord = 1 << (ceil_log2(n) / 2);
  std::vector<Values> distance(n, Values(n, 1e9));
  for (int i = 0; i < n; ++i) {
    distance[i][i] = 0;
    for (const auto& [step, weight] : {std::pair{1, 1.0}, std::pair{chord, 1.5}}) {
      const int j = (i + step) % n;
      if (j == i) continue;
      distance[i][j] = std::min(distance[i][j], weight);
      distance[j][i] = std::min(distance[j][i], weight);
    }
  }
  for (int k = 0; k < n; ++k) {
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        distance[i][j] = std::min(distance[i][j], distance[i][k] + distance[k][j]);
      }
    }
  }
  Values result(n, 1e9);
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) result[j] = std::min(result[j], x[i] + distance[i][j]);
  }
  return result;
}

Values cosine_transform(const Values& x) {
  Values result(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t j = 0; j < x.size(); ++j) {
      result[i] += std::cos(std::numbers::pi * static_cast<double>(i) *
                            (static_cast<double>(j) + 0.5) / static_cast<double>(x.size())) *
                   x[j];
    }
  }
  return result;
}

Values exact_answer(const StaticProgram& program, const Values& x) {
  if (!program.task.empty()) {
    const std::vector<float> input(x.begin(), x.end());
    std::vector<float> target(x.size());
    find_task(program.task).solve(program.length, input, target);
    return {target.begin(), target.end()};
  }
  static const std::map<std::string, std::function<Values(const Values&)>> answers = {
      {"reduce",
       [](const Values& v) { return Values(v.size(), std::accumulate(v.begin(), v.end(), 0.0)); }},
      {"broadcast", [](const Values& v) { return Values(v.size(), v[0]); }},
      {"matrix-vector", cosine_transform},
      {"distances", shortest_distances},
  };
  return answers.at(program.name)(x);
}

void expect_near(const Values& found, const Values& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], tolerance) << i;
}

class Library : public testing::TestWithParam<std::string> {};

TEST_P(Library, ComputesTheExactAnswer) {
  for (const int n : lengths()) {
    SCOPED_TRACE(n);
    const StaticProgram program = library_program(GetParam(), n);
    EXPECT_EQ(program.name, GetParam());
    for (uint32_t sample = 0; sample < 5; ++sample) {
      const Values x = random_values(program.processors, sample);
      const Values y = run_static<double>(program, x, 1);
      // Targets are floats: half an ulp of sums up to 256.
      expect_near(y, exact_answer(program, x), 1e-5);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST_P(Library, PlansComputeTheSame) {
  for (const int n : {1, 2, 7, 8, 32}) {
    SCOPED_TRACE(n);
    const StaticProgram program = library_program(GetParam(), n);
    const NetworkPlan plan = plan_network(program);
    EXPECT_EQ(plan.constants, GetParam() == "distances");
    const Values x = random_values(program.processors, 9);
    expect_near(run_plan(plan, x), run_static<double>(program, x, 1), 1e-12);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST_P(Library, HasNoLoopThatNeverRuns) {
  const LibraryProgram program = find_program(GetParam());
  for (const int n : {2, 3, 4, 8, 9}) {
    std::vector<std::string> warnings;
    compile_text(program.text, program.file, n, {.warnings = &warnings});
    EXPECT_EQ(warnings, std::vector<std::string>()) << n;
  }
}

TEST_P(Library, HasADescription) {
  const LibraryProgram program = find_program(GetParam());
  EXPECT_FALSE(program.description.empty());
  EXPECT_EQ(program.file, GetParam() + ".par");
}

std::vector<std::string> names() {
  std::vector<std::string> list;
  for (const LibraryProgram& program : library_programs()) list.push_back(program.name);
  return list;
}
bool has_definition(const std::string& name) {
  return find_definition(library_program(name, 4).task) != nullptr;
}
// The others have a test of their own (task_programs_test.cc).
bool has_one_real(const std::string& name) {
  const StaticProgram program = library_program(name, 4);
  return program.inputs.size() == 1 && program.words[program.inputs[0]].type.is_real();
}
std::vector<std::string> names(bool defined) {
  std::vector<std::string> list = names();
  std::erase_if(list, [&](const std::string& name) {
    return has_definition(name) != defined || (!defined && !has_one_real(name));
  });
  return list;
}
std::string identifier(const testing::TestParamInfo<std::string>& of) {
  std::string name = of.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Programs, Library, testing::ValuesIn(names(false)), identifier);

// Programs whose answer is a definition: messages, graphs, letters.
class DefinedLibrary : public testing::TestWithParam<std::string> {};

Values drawn_input(const StaticProgram& program, uint32_t sample) {
  const ProgramTask task(program);
  std::vector<float> input(task.shape(program.length).input_count());
  RandomStream random(5, Purpose::test_data, sample, static_cast<uint32_t>(program.length));
  task.draw(random, test_range(2, 1, false), program.length, input);
  return {input.begin(), input.end()};
}

bool has_reals(const StaticProgram& program) {
  return std::ranges::any_of(program.words, [](const auto& word) { return word.type.is_real(); });
}

TEST_P(DefinedLibrary, ComputesItsDefinition) {
  for (const int n : {1, 2, 3, 7, 8, 16, 33}) {
    SCOPED_TRACE(n);
    const StaticProgram program = library_program(GetParam(), n);
    const Definition& definition = *find_definition(program.task);
    for (uint32_t sample = 0; sample < 20; ++sample) {
      const Values x = drawn_input(program, sample);
      EXPECT_FALSE(input_fault(program, x));
      // Sums of reals may be added in another order.
      expect_near(run_static<double>(program, x, 1), definition.answer(program.processors, x),
                  has_reals(program) ? 1e-12 : 0);
    }
  }
}

TEST_P(DefinedLibrary, NetworksComputeTheSameOnEveryWay) {
  for (const int n : {1, 2, 5, 8}) {
    const StaticProgram program = library_program(GetParam(), n);
    for (const Routing routing : {Routing::automatic, Routing::sort, Routing::benes}) {
      SCOPED_TRACE(std::to_string(n) + " " + std::string(to_string(routing)));
      const RoutedProgram routed = route_messages(program, routing);
      const Model model = compile(routed.program);
      for (uint32_t sample = 0; sample < 5; ++sample) {
        const Values x = drawn_input(program, sample);
        const std::vector<float> row(x.begin(), x.end());
        const std::vector<float> found =
            predict_rows(model, routed_inputs<float>(program, routed, row, 1), 1);
        expect_near({found.begin(), found.end()}, run_static<double>(program, x, 1),
                    has_reals(program) ? 1e-3 : 0);
      }
    }
  }
}

TEST_P(DefinedLibrary, HasADescription) {
  EXPECT_FALSE(find_program(GetParam()).description.empty());
}
INSTANTIATE_TEST_SUITE_P(Programs, DefinedLibrary, testing::ValuesIn(names(true)), identifier);

TEST(LibraryList, KHopHasTheLayersOfItsSorts) {
  const StaticProgram program = [] {
    const LibraryProgram source = find_program("k-hop");
    return compile_text(source.text, source.file, 100, {.settings = {{"K", 31}, {"q", 4}}});
  }();
  const NetworkPlan plan = plan_network(route_messages(program, Routing::sort).program);
  EXPECT_EQ(plan.layers.size(), 210u);  // 7 sorts of 28 stages, and what lies between
}

TEST(LibraryList, NamesTheKnownOnes) {
  EXPECT_EQ(names().size(), 32u);
  EXPECT_TRUE(std::ranges::is_sorted(names()));
  try {
    find_program("sorted");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(error.hint().find("sort"), std::string::npos);
  }
}

TEST(LibraryList, FilesAreProgramsToo) {
  const std::string path = testing::TempDir() + "library_test.par";
  write_file(path, std::string_view("# twice\nword x : real = input\nx = 2 * x\noutput x\n"));
  EXPECT_EQ(find_program(path).description, "twice");
  EXPECT_EQ(run_static<double>(library_program(path, 2), Values{1, 2}, 1), (Values{2, 4}));
  write_file(path, std::string_view("word x : real = input\noutput y\n"));
  try {
    library_program(path, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.problem().find(path + ":2:8: unknown name 'y'"), std::string::npos);
  }
  std::filesystem::remove(path);
  EXPECT_THROW(find_program(path), Error);
}

// Layers are what the constructions promise, with T = ceil(log2 n).
TEST(LibraryList, LayersAreAsFewAsPromised) {
  const auto layers = [](const char* name, int n) {
    return static_cast<int>(plan_network(library_program(name, n)).layers.size());
  };
  for (const int n : {8, 13, 32}) {
    const int t = ceil_log2(n);
    EXPECT_EQ(layers("cumulative-sum", n), t);
    EXPECT_EQ(layers("cumulative-min", n), t);
    EXPECT_EQ(layers("sort", n), t * (t + 1) / 2);
    EXPECT_EQ(layers("sort-odd-even", n), t * (t + 1) / 2);
    EXPECT_EQ(layers("cumulative-max-subarray", n), 3 * t + 1);
    EXPECT_EQ(layers("cumulative-median", n), t + t * (t + 3) / 2);
    EXPECT_EQ(layers("min-sum", n), t + 1);
    EXPECT_EQ(layers("matrix-vector", n), 1);
  }
}

}  // namespace
}  // namespace posattn
