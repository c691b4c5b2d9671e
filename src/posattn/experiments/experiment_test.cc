#include "posattn/experiments/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "posattn/base/embedded_file.h"
#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"

namespace posattn {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::string small = R"(title = "A small one"
tasks = ["cumulative-sum", "sort"]
seeds = "0..2"
[axis]
key = "samples"
values = [100, 200]
test-scale = 3
[settings]
epochs = 2
batch = 50
[[lines]]
name = "ours"
architecture = "positional"
[[lines]]
architecture = "m0"
depth = 1
[quick]
tasks = ["sort"]
seeds = "0"
values = [100]
settings = { epochs = 1 }
)";

Experiment read(const std::string& toml, const ExperimentChanges& changes = {}) {
  return read_experiment(toml, "small", "small.toml", changes);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void expect_refused(const std::string& toml, ExitCode code, const std::string& problem,
                    const std::string& expected) {
  SCOPED_TRACE(problem);
  try {
    read(toml);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.problem(), HasSubstr(problem));
    EXPECT_THAT(error.expected(), HasSubstr(expected));
  }
}

TEST(Experiment, IsReadWhole) {
  const Experiment experiment = read(small);
  EXPECT_EQ(experiment.title, "A small one");
  EXPECT_THAT(experiment.tasks, ElementsAre("cumulative-sum", "sort"));
  EXPECT_THAT(experiment.seeds, ElementsAre(0, 1, 2));
  EXPECT_EQ(experiment.metric->name, "mse");
  EXPECT_EQ(experiment.axis.key, "samples");
  EXPECT_EQ(experiment.axis.label, "samples");
  EXPECT_EQ(experiment.axis.test_x, 3);
  EXPECT_EQ(experiment.settings.epochs, 2);
  ASSERT_THAT(experiment.lines, SizeIs(2));
  EXPECT_EQ(experiment.lines[0].name, "ours");
  EXPECT_EQ(experiment.lines[1].name, "m0");
  EXPECT_EQ(experiment.output_name, "small");
  EXPECT_EQ(experiment.reduction, "");
}

TEST(Experiment, GridIsEveryCombinationOnce) {
  const std::vector<ExperimentRun> runs = runs_of(read(small));
  ASSERT_THAT(runs, SizeIs(2 * 2 * 2 * 3));
  std::set<std::string> keys;
  for (const ExperimentRun& run : runs) {
    keys.insert(run.key);
    EXPECT_EQ(run.config.task, run.task);
    EXPECT_EQ(run.config.samples, *run.x);
    EXPECT_EQ(run.config.depth, run.line == "m0" ? 1 : 0);
  }
  EXPECT_THAT(keys, SizeIs(runs.size()));
  EXPECT_EQ(runs.front().task, "cumulative-sum");
  EXPECT_EQ(runs.front().line, "ours");
  EXPECT_EQ(runs.back().config.seed, 2);
}

TEST(Experiment, RunsOfEqualStepsHaveEpochsByTheirSamples) {
  const std::string steps =
      replaced(replaced(small, "epochs = 2\n", ""), "test-scale", "steps = 12\ntest-scale");
  const std::string stepped = replaced(steps, "settings = { epochs = 1 }", "steps = 4");
  for (const ExperimentRun& run : runs_of(read(stepped))) {
    EXPECT_EQ(run.config.epochs * (run.config.samples / run.config.batch), 12);
  }
  const Experiment quick = read(stepped, {.quick = true});
  EXPECT_EQ(runs_of(quick).front().config.epochs, 2);
  EXPECT_EQ(quick.reduction, "quick: 4 steps, 1 runs");
  expect_refused(steps, ExitCode::configuration, "'epochs' among the settings", "does not decide");
  expect_refused(replaced(small, "test-scale", "steps = 0\ntest-scale"), ExitCode::configuration,
                 "bad 'steps'", "above 0");
  expect_refused(replaced(replaced(small, "key = \"samples\"", "key = \"batch\"\nsteps = 12"),
                          "batch = 50", "samples = 500"),
                 ExitCode::configuration, "bad 'steps'", "only where the axis is \"samples\"");
  try {
    read(stepped, {.epochs = 3});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.expected(), HasSubstr("it decides epochs"));
  }
}

TEST(Experiment, KeyIsWhatDecidesTheResult) {
  RunConfig config;
  const std::string key = run_key(config);
  EXPECT_THAT(key, HasSubstr("cumulative-sum-positional-seed0-"));
  RunConfig other = config;
  other.device = "cuda";
  other.checkpoint_every = 7;
  EXPECT_EQ(run_key(other), key);
  for (const char* field : {"seed", "samples", "epochs", "length", "batch"}) {
    other = config;
    set_field(other, field, std::to_string(std::stoll(get_field(config, field)) + 1));
    EXPECT_NE(run_key(other), key) << field;
  }
  // What a run starts from decides its result, where that lies does not.
  other = config;
  other.from = "here.safetensors";
  other.from_hash = "0123456789abcdef";
  const std::string started = run_key(other);
  EXPECT_NE(started, key);
  other.from = "there.safetensors";
  EXPECT_EQ(run_key(other), started);
  other.from_hash = "fedcba9876543210";
  EXPECT_NE(run_key(other), started);
}

// Folders and recorded runs are found by their keys.
TEST(Experiment, KeysStayWhatTheyWere) {
  RunConfig config;
  config.validate_every = 100;
  config.test_every = 0;
  EXPECT_EQ(run_key(config), "cumulative-sum-positional-seed0-0e78fe04bda17e40");
  for (const ExperimentRun& run : runs_of(read(replaced(small, "\"0..2\"", "\"0,9,10,123456\"")))) {
    EXPECT_EQ(run.key, run_key(run.config));
  }
}

TEST(Experiment, PresetsOfOneArchitectureShareRuns) {
  const auto key_of = [](const std::string& architecture) {
    return runs_of(read(replaced(small, "\"m0\"", "\"" + architecture + "\""))).back().key;
  };
  EXPECT_EQ(key_of("m0"), key_of("standard"));
  EXPECT_NE(key_of("m0"), key_of("m2"));
}

TEST(Experiment, ChangesFromTheCommandLine) {
  EXPECT_THAT(runs_of(read(small, {.tasks = {"sort"}, .lines = {"m0"}, .runs = 2})), SizeIs(4));
  EXPECT_THAT(read(small, {.seeds = {7, 9}}).seeds, ElementsAre(7, 9));
  EXPECT_THAT(read(small, {.values = {200}}).axis.values, ElementsAre(200));
  const Experiment longer = read(small, {.epochs = 5});
  EXPECT_EQ(longer.settings.epochs, 5);
  EXPECT_EQ(longer.output_name, "small-epochs5");
  EXPECT_THAT(longer.reduction, HasSubstr("5 epochs"));
  EXPECT_EQ(read(small, {.epochs = 5, .precision = "tf32"}).output_name, "small-epochs5-tf32");
  EXPECT_EQ(read(small, {.precision = "fp32"}).output_name, "small");
  EXPECT_THROW(read(small, {.tasks = {"path"}}), Error);
  EXPECT_THROW(read(small, {.lines = {"standard"}}), Error);
  EXPECT_THROW(read(small, {.runs = 4}), Error);
  EXPECT_THROW(read(small, {.values = {300}}), Error);
  EXPECT_THROW(read(small, {.device = "tpu"}), Error);
}

TEST(Experiment, ChangesHoldForLinesWithTheirOwnSetting) {
  const std::string own = replaced(small, "depth = 1", "depth = 1\nepochs = 7");
  EXPECT_EQ(runs_of(read(own)).back().config.epochs, 7);
  for (const ExperimentRun& run : runs_of(read(own, {.epochs = 5}))) {
    EXPECT_EQ(run.config.epochs, 5) << run.line;
  }
  const std::string axis =
      replaced(replaced(small, "key = \"samples\"", "key = \"epochs\""), "[100, 200]", "[3, 4]");
  const std::string without = replaced(axis.substr(0, axis.find("[quick]")), "epochs = 2\n", "");
  EXPECT_THAT(runs_of(read(without)), SizeIs(24));
  EXPECT_THROW(read(without, {.epochs = 5}), Error);
}

TEST(Experiment, QuickIsReducedAndSaysSo) {
  const Experiment quick = read(small, {.quick = true});
  EXPECT_THAT(runs_of(quick), SizeIs(2));
  EXPECT_EQ(quick.output_name, "small-quick");
  EXPECT_EQ(quick.reduction, "quick: 1 epochs, 1 runs");
  const Experiment longer = read(small, {.quick = true, .epochs = 5});
  EXPECT_EQ(longer.output_name, "small-quick-epochs5");
  EXPECT_EQ(longer.reduction, "quick: 5 epochs, 1 runs");
  const std::string without = small.substr(0, small.find("[quick]"));
  EXPECT_THROW(read(without, {.quick = true}), Error);
  EXPECT_NO_THROW(read(without));
}

TEST(Experiment, MistakesAreNamedWithTheirLine) {
  const auto code = ExitCode::configuration;
  expect_refused("title = ", code, "small.toml:1 is not TOML", "experiment");
  expect_refused(replaced(small, "seeds", "sedes"), code, "unknown key 'sedes' in small.toml:3",
                 "seeds");
  expect_refused(replaced(small, "\"sort\"]\nseeds", "\"sorting\"]\nseeds"), code,
                 "unknown task 'sorting' in small.toml:2", "sort");
  expect_refused(replaced(small, "\"sort\"]\nseeds", "\"cumulative-sum\"]\nseeds"), code,
                 "bad 'tasks' in small.toml:2", "once");
  expect_refused(replaced(small, "key = \"samples\"", "key = \"task\""), code,
                 "bad 'key' in small.toml:5", "test-scales");
  expect_refused(replaced(small, "[100, 200]", "[200, 100]"), code, "bad 'values' in small.toml:6",
                 "ascending");
  expect_refused(replaced(small, "[100, 200]", "[100.5, 200]"), code, "samples", "integer");
  expect_refused(replaced(small, "test-scale = 3", "test-scale = 11"), code, "no test at c = 11",
                 "test-scales");
  expect_refused(replaced(small, "depth = 1", "depth = 1\ntest-scales = \"1..2\""), code,
                 "no test at c = 3 of line 'm0'", "test-scales = \"1..2\"");
  expect_refused(replaced(small, "\"0..2\"", "\"2..0\""), code, "seeds in small.toml:3", "");
  expect_refused(replaced(small, "epochs = 2", "epocs = 2"), code,
                 "unknown key 'epocs' in small.toml:9", "epochs");
  expect_refused(replaced(small, "epochs = 2", "epochs = \"2\""), code,
                 "wrong type of 'epochs' in small.toml:9", "an integer");
  expect_refused(replaced(small, "epochs = 2", "epochs = 0"), code, "epochs = 0 in small.toml:9",
                 "at least 1");
  expect_refused(replaced(small, "epochs = 2", "seed = 2"), code,
                 "'seed' among the settings in small.toml:9", "");
  expect_refused(replaced(small, "architecture = \"m0\"", "architecture = \"m9\""), code,
                 "unknown architecture 'm9'", "m0");
  expect_refused(replaced(small, "architecture = \"m0\"\ndepth = 1", "architecture = \"m5\""), code,
                 "repeats the runs", "differ");
  expect_refused(replaced(small, "name = \"ours\"", "name = \"m0\""), code, "bad 'name'", "own");
  expect_refused(replaced(small, "batch = 50", "batch = 500"), code, "batch", "");
  expect_refused(replaced(small, "settings = { epochs = 1 }", "settings = { epoch = 1 }"), code,
                 "unknown key 'epoch' in small.toml:21", "epochs");
  expect_refused(replaced(small, "tasks = [\"sort\"]", "tasks = [\"path\"]"), code,
                 "bad 'tasks' in small.toml:18", "part");
}

TEST(Experiment, ShowsTheTestsOfOneLength) {
  const std::string toml = replaced(replaced(small, "test-scale = 3", "test-length = 8"),
                                    "epochs = 2", "epochs = 2\ntest-lengths = \"8\"");
  const Experiment experiment = read(toml);
  EXPECT_EQ(experiment.axis.test_axis.name, "length");
  EXPECT_EQ(experiment.axis.test_x, 8);
  EXPECT_EQ(experiment.axis.name(), "samples");
  const auto code = ExitCode::configuration;
  expect_refused(replaced(small, "test-scale = 3", "test-length = 8"), code,
                 "no test at length = 8", "test-lengths = \"\"");
  expect_refused(replaced(toml, "test-length = 8", "test-length = 8\ntest-scale = 3"), code,
                 "bad 'test-length'", "one such key");
}

// Squared errors of numbers say nothing about classes, and the other way round.
TEST(Experiment, TheMetricSuitsTheTasks) {
  expect_refused(replaced(small, "seeds", "metric = \"label_error\"\nseeds"),
                 ExitCode::configuration, "bad 'metric' in small.toml:3", "\"mse\"");
}

TEST(Experiment, WhatTheGridDecidesIsNoSetting) {
  const auto code = ExitCode::configuration;
  expect_refused(replaced(small, "epochs = 2", "samples = 300"), code,
                 "'samples' among the settings in small.toml:9", "does not decide");
  expect_refused(replaced(small, "depth = 1", "samples = 300"), code,
                 "'samples' among the settings in small.toml:16", "does not decide");
  expect_refused(replaced(small, "{ epochs = 1 }", "{ samples = 300 }"), code,
                 "'samples' among the settings in small.toml:21", "does not decide");
  try {  // what is offered instead is accepted
    read(replaced(small, "epochs = 2", "sede = 2"));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    const std::string offered = ", " + error.expected() + ",";
    for (const char* key : {"task", "seed", "seeds", "samples"}) {
      EXPECT_THAT(offered, ::testing::Not(HasSubstr(std::string(", ") + key + ",")));
    }
    EXPECT_THAT(offered, HasSubstr(", test-scales,"));
  }
}

TEST(Experiment, TextsArePlainLines) {
  const auto code = ExitCode::configuration;
  const std::string expected = "control characters";
  for (const char* mark : {"\\u0007", "\\u202e", "\\n", "\\u001b[31m"}) {
    const std::string text = std::string("\"a") + mark + "b\"";
    expect_refused(replaced(small, "\"A small one\"", text), code, "bad 'title' in small.toml:1",
                   expected);
    expect_refused(replaced(small, "\"ours\"", text), code, "bad 'name' in small.toml:12",
                   expected);
    expect_refused(replaced(small, "test-scale", "label = " + text + "\ntest-scale"), code,
                   "bad 'label' in small.toml:7", expected);
  }
  EXPECT_THROW(load_experiment("a\a.toml"), Error);
  const std::string described = "description = \"\"\"\nTwo\nlines\"\"\"\n" + small;
  EXPECT_EQ(read(described).description, "Two\nlines");
}

TEST(Experiment, SeedsHaveABound) {
  for (const char* seed : {"18446744073709551615", "9223372036854775807"}) {
    expect_refused(replaced(small, "0..2", seed), ExitCode::configuration, "seeds in small.toml:3",
                   "at most 9000000000000000000");
  }
}

TEST(Experiment, NameIsNoPartOfAResultsFolder) {
  for (const char* file :
       {"runs.toml", "folder/results.db.toml", "results.db-journal.toml", "results.db.new.toml",
        "shards.toml", "slurm.toml", "...toml", ".hidden.toml", ".merging.toml"}) {
    SCOPED_TRACE(file);
    try {
      load_experiment(file);
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      EXPECT_THAT(error.problem(), HasSubstr("an experiment named"));
    }
  }
  EXPECT_THROW(load_experiment(std::string(5000, 'a')), Error);  // no file can have this name
  try {  // one that cannot become longer, as for its figure
    load_experiment(std::string(240, 'a') + ".toml");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_THAT(error.problem(), HasSubstr("240 bytes"));
  }
}

// Results of a file must not replace those of an experiment of the program.
TEST(Experiment, OwnFilesDoNotTakeAnEmbeddedOnesFolder) {
  const TemporaryFolder folder;
  const auto load = [&](const std::string& name, const std::string& text,
                        const ExperimentChanges& changes = {}) {
    const std::filesystem::path file = folder.path() / (name + ".toml");
    write_file(file, text);
    return load_experiment(file.string(), changes);
  };
  for (const char* name : {"value-range", "value-range-quick", "accuracy-epochs20",
                           "encodings-tf32", "variants-fp32", "sample-count-quick-epochs3-tf32"}) {
    SCOPED_TRACE(name);
    for (const bool quick : {false, true}) {
      try {
        load(name, small, {.quick = quick});
        ADD_FAILURE() << "accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::configuration);
        EXPECT_THAT(error.problem(), HasSubstr(std::string(name) + ".toml"));
        EXPECT_THAT(error.hint(), HasSubstr("rename"));
      }
    }
  }
  for (const char* name :
       {"my-value-range", "value-ranges", "value-range-epochs", "value-range-2"}) {
    EXPECT_EQ(load(name, small).output_name, name);
  }
  // The very text is the same experiment.
  const auto& embedded = embedded_experiments();
  const std::string text(
      std::ranges::find(embedded, "value-range.toml", &EmbeddedFile::name)->text);
  EXPECT_TRUE(load("value-range", text).is_embedded);
  EXPECT_THROW(load("value-range-quick", text), Error);
}

TEST(Experiment, OutputNamesTellTheirChanges) {
  const auto changes = changes_of_output("mine-quick-epochs12-tf32", "mine");
  ASSERT_TRUE(changes);
  EXPECT_TRUE(changes->quick);
  EXPECT_EQ(changes->epochs, 12);
  EXPECT_EQ(changes->precision, "tf32");
  EXPECT_TRUE(changes_of_output("mine", "mine"));
  for (const char* other : {"min", "mine2", "mine-epochs", "mine-epochs1x", "mine-tf32-quick"}) {
    EXPECT_FALSE(changes_of_output(other, "mine")) << other;
  }
}

TEST(Experiment, AGridHasALimit) {
  const std::string most = replaced(small, "\"0..2\"", "\"0..9999\"");
  EXPECT_THAT(runs_of(read(most)), SizeIs(80000));
  expect_refused(replaced(most, "[100, 200]", "[100, 200, 300]"), ExitCode::configuration,
                 "a grid of 120000 runs", "at most 100000 runs");
}

TEST(Experiment, EmbeddedOnesAreWhole) {
  const std::vector<std::string> names = experiment_names();
  EXPECT_THAT(
      names,
      ElementsAre("value-range", "value-range-homogeneous", "sample-count", "sample-count-outside",
                  "input-length", "variable-length", "small-standard", "encodings", "variants",
                  "accuracy", "length-generalisation", "beside-compiled", "k-hop", "k-hop-unseen",
                  "k-hop-error", "k-hop-length", "k-hop-sanford", "k-hop-codes",
                  "samples-depth-k-hop", "samples-depth-sum", "mixed-type", "mixed-type-samples",
                  "mixed-type-gpt2", "mixed-type-gpt2-unparsable", "dape-recall",
                  "encodings-by-score", "k-hop-settings", "k-hop-settings-error",
                  "k-hop-settings-unseen", "k-hop-small", "k-hop-small-unseen", "k-hop-small-error",
                  "kinds-k-hop", "kinds-k-hop-error", "kinds", "scale-free", "mixed-scales",
                  "neighbour-min", "neighbour-min-range", "streams-length", "streams-letters",
                  "streams-pointer", "streams-pointer-1", "streams-pointer-2", "streams-pointer-3",
                  "streams-value-range", "streams-mixed-scales"));
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Experiment experiment = load_experiment(name);
    EXPECT_EQ(experiment.name, name);
    EXPECT_FALSE(experiment.title.empty());
    EXPECT_FALSE(runs_of(load_experiment(name, {.quick = true})).empty());
    const ExperimentFile file = embedded_experiment(name).value();
    EXPECT_NO_THROW(check_views(file.text, file.name, file.name + ".toml"));
  }
  EXPECT_THAT(runs_of(load_experiment("value-range")), SizeIs(100));  // the paper's
  EXPECT_THAT(runs_of(load_experiment("value-range", {.quick = true})), SizeIs(8));
  EXPECT_THAT(runs_of(load_experiment("value-range-homogeneous")), SizeIs(100));
}

// What is trained for one experiment serves the others.
TEST(Experiment, EmbeddedOnesShareRuns) {
  std::set<std::string> central;
  for (const ExperimentRun& run : runs_of(load_experiment("value-range"))) central.insert(run.key);
  const auto shared = [&](const std::string& name) {
    int64_t count = 0;
    for (const ExperimentRun& run : runs_of(load_experiment(name))) count += central.count(run.key);
    return count;
  };
  EXPECT_EQ(shared("value-range-homogeneous"), 0);
  EXPECT_EQ(shared("accuracy"), 100);
  EXPECT_EQ(shared("sample-count"), 100);
  EXPECT_EQ(shared("input-length"), 100);
  EXPECT_EQ(shared("variants"), 100);
  EXPECT_EQ(shared("encodings"), 100);
  EXPECT_EQ(shared("variable-length"), 0);
  central.clear();
  for (const ExperimentRun& run : runs_of(load_experiment("k-hop"))) central.insert(run.key);
  EXPECT_EQ(shared("k-hop-unseen"), 160);
  EXPECT_EQ(shared("k-hop-error"), 80);
  EXPECT_EQ(shared("k-hop-length"), 60);
  EXPECT_EQ(shared("k-hop-codes"), 0);
  central.clear();
  for (const ExperimentRun& run : runs_of(load_experiment("mixed-type-gpt2"))) {
    central.insert(run.key);
  }
  EXPECT_EQ(shared("mixed-type-gpt2-unparsable"), 10);
}

// Its views are other ways to show its runs.
const std::string viewed = small + R"(
[[views]]
name = "inside"
title = "Inside the range"
axis = { test-scale = 1 }
[[views]]
name = "by-scale"
metric = "accuracy"
axis = { key = "test-scales", values = [1, 2] }
lines = [{ architecture = "positional", samples = 200 }]
)";

Experiment read_view(const std::string& toml, const std::string& view,
                     const ExperimentChanges& changes = {}) {
  return read_experiment(toml, "small", "small.toml", changes, view);
}

TEST(ExperimentView, ShowsRunsOfItsExperiment) {
  const auto keys_of = [](const Experiment& experiment) {
    std::vector<std::string> keys;
    for (const ExperimentRun& run : runs_of(experiment)) keys.push_back(run.key);
    return keys;
  };
  const Experiment whole = read(viewed), inside = read_view(viewed, "inside");
  EXPECT_EQ(keys_of(whole), keys_of(read(small)));
  EXPECT_EQ(keys_of(inside), keys_of(whole));
  EXPECT_EQ(inside.name, "inside");
  EXPECT_EQ(inside.view_of, "small");
  EXPECT_EQ(inside.title, "Inside the range");
  EXPECT_EQ(inside.axis.key, "samples");
  EXPECT_EQ(inside.axis.test_x, 1);
  EXPECT_EQ(read_view(viewed, "inside", {.epochs = 5}).output_name, "inside-epochs5");
  EXPECT_THAT(read_view(viewed, "inside", {.quick = true}).axis.values, ElementsAre(100));

  const Experiment by_scale = read_view(viewed, "by-scale");
  EXPECT_EQ(by_scale.title, "by-scale");
  EXPECT_EQ(by_scale.metric->name, "accuracy");
  EXPECT_THAT(by_scale.axis.values, ElementsAre(1, 2));
  ASSERT_THAT(runs_of(by_scale), SizeIs(2 * 3));
  for (const std::string& key : keys_of(by_scale)) EXPECT_THAT(keys_of(whole), Contains(key));
  // Values of the experiment's axis are none of the view's.
  EXPECT_THAT(read_view(viewed, "by-scale", {.quick = true}).axis.values, ElementsAre(1, 2));
}

TEST(ExperimentView, MistakesShowWithTheExperiment) {
  const auto refused = [](const std::string& toml, const std::string& problem,
                          const std::string& expected) {
    try {
      check_views(toml, "small", "small.toml");
      ADD_FAILURE() << "accepted: " << problem;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      EXPECT_THAT(error.problem(), HasSubstr(problem));
      EXPECT_THAT(error.expected(), HasSubstr(expected));
    }
  };
  EXPECT_NO_THROW(check_views(viewed, "small", "small.toml"));
  refused(replaced(viewed, "samples = 200", "samples = 300"),
          "line 'positional' of view 'by-scale' is not among", "lines and an axis");
  refused(replaced(viewed, "test-scale = 1 ", "test-scale = 11 "), "no test at c = 11",
          "among test-scales");
  refused(replaced(viewed, "\"accuracy\"", "\"wrong\""), "bad 'metric' in small.toml:29", "one of");
  refused(replaced(viewed, "metric", "tasks"), "'tasks' in small.toml:29", "");
  refused(replaced(viewed, "\"by-scale\"", "\"inside\""), "bad 'name'", "of its own");
  refused(replaced(viewed, "\"inside\"", "\"../x\""), "bad 'name'", "a folder");
  refused(small + "[views]\nname = \"x\"\n", "bad 'views'", "[[views]]");
  EXPECT_THROW(read_view(viewed, "outside"), Error);
}

TEST(ExperimentView, OfAFileIsNamedBehindIt) {
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "mine.toml").string();
  write_file(file, viewed);
  EXPECT_EQ(load_experiment(file).name, "mine");
  EXPECT_EQ(load_experiment(file + ":inside").output_name, "inside");
  EXPECT_THROW(load_experiment(file + ":outside"), Error);
  write_file(file, replaced(viewed, "\"inside\"", "\"accuracy\""));
  EXPECT_EQ(load_experiment(file).name, "mine");
  try {
    load_experiment(file + ":accuracy");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.problem(), HasSubstr("mine.toml:accuracy"));
    EXPECT_EQ(error.hint(), "rename it, as my-accuracy");
  }
}

const std::string hops = R"(tasks = ["k-hop"]
seeds = "0"
metric = "label_error"
[axis]
key = "k"
values = [0, 2]
[settings]
length = 8
samples = 64
batch = 64
scratch-nodes = 0
encoding = "learned"
test-axis = "k=0..3;letters=0,1"
[[lines]]
architecture = "positional"
)";

TEST(Experiment, AnAxisThatTheTasksStateMayBeItsOwn) {
  const Experiment along = read(hops);
  EXPECT_TRUE(along.axis.is_tested());
  EXPECT_EQ(along.axis.name(), "k");
  EXPECT_THAT(along.axis.values, ElementsAre(0, 2));
  EXPECT_THAT(runs_of(along), SizeIs(1));
  const std::string by_depth =
      replaced(hops, "key = \"k\"\nvalues = [0, 2]",
               "key = \"depth\"\nvalues = [1, 2]\ntest-axis = \"letters=1\"");
  const Experiment deeper = read(by_depth);
  EXPECT_FALSE(deeper.axis.is_tested());
  EXPECT_EQ(deeper.axis.test_axis.name, "letters");
  EXPECT_EQ(deeper.axis.test_x, 1);
  EXPECT_THAT(runs_of(deeper), SizeIs(2));

  const ExitCode code = ExitCode::configuration;
  expect_refused(replaced(hops, "[0, 2]", "[0, 4]"), code, "no test at k = 4", "k among test-axis");
  expect_refused(replaced(hops, "[0, 2]", "[-1, 2]"), code, "bad 'values'", "from 0 on");
  expect_refused(replaced(hops, "\"k\"", "\"j\""), code, "bad 'key'", "the tasks state");
  for (const char* bad : {"letters=0,1", "c=1", "other=1", "letters"}) {
    expect_refused(replaced(by_depth, "letters=1", bad), code, "bad 'test-axis'", "one place");
  }
}

// A run's device can be named where there is none: nothing is trained here.
Experiment value_range(const char* device, const char* precision = "") {
  return load_experiment("value-range", {.device = device, .precision = precision});
}

TEST(LeftOutPrecision, IsTf32OnTheGpu) {
  const TemporaryFolder results;
  EXPECT_EQ(precision_to_train(value_range("cuda"), results.path()), "tf32");
  EXPECT_EQ(precision_to_train(value_range("cpu"), results.path()), "");
  EXPECT_EQ(value_range("cuda", "tf32").output_name, "value-range-tf32");
}

TEST(LeftOutPrecision, ResultsInFp32GoOnInFp32) {
  const TemporaryFolder results;
  std::filesystem::create_directories(results.path() / "value-range");
  EXPECT_EQ(precision_to_train(value_range("cuda"), results.path()), "");
  EXPECT_EQ(precision_to_read(value_range("cuda"), results.path()), "");
  std::filesystem::create_directories(results.path() / "value-range-tf32");
  EXPECT_EQ(precision_to_train(value_range("cuda"), results.path()), "");
  EXPECT_EQ(precision_to_read(value_range("cuda"), results.path()), "");
}

TEST(LeftOutPrecision, ResultsInTf32AloneAreRead) {
  const TemporaryFolder results;
  EXPECT_EQ(precision_to_read(value_range("cpu"), results.path()), "");
  std::filesystem::create_directories(results.path() / "value-range-tf32");
  EXPECT_EQ(precision_to_read(value_range("cpu"), results.path()), "tf32");
}

TEST(LeftOutPrecision, ModelsOfTokensStayInFp32) {
  const TemporaryFolder results;
  const Experiment tokens = load_experiment("k-hop", {.device = "cuda"});
  EXPECT_EQ(precision_to_train(tokens, results.path()), "");
}

// The keys of all results that there are.
TEST(LeftOutPrecision, ChangesNoKey) {
  const Experiment plain = value_range("cuda"), named = value_range("cpu", "fp32");
  EXPECT_EQ(runs_of(plain).front().key, runs_of(named).front().key);
  EXPECT_NE(runs_of(plain).front().key, runs_of(value_range("cuda", "tf32")).front().key);
}

TEST(LeftOutPrecision, AFileMayStateIt) {
  const std::string text =
      "tasks = [\"sort\"]\nseeds = \"0\"\n[axis]\nkey = \"test-scales\"\nvalues = [1]\n"
      "[settings]\ntest-scales = \"1\"\nprecision = \"fp32\"\n"
      "[[lines]]\nname = \"positional\"\narchitecture = \"positional\"\n";
  const TemporaryFolder results;
  const Experiment stated = read_experiment(text, "mine", "mine.toml", {.device = "cuda"});
  EXPECT_EQ(precision_to_train(stated, results.path()), "");
}

}  // namespace

}  // namespace posattn
