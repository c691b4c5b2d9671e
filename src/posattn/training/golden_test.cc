// The losses of a run's first steps, of every preset, task and setting that changes them. They go
// through samples, shuffles, initial weights, forward, backward and the optimiser.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posattn/training/run.h"
#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

// Instruction sets and paths round differently, by up to 6e-8 here.
constexpr double tolerance = 5e-7;

struct GoldenRun {
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<double> train_losses;  // of the first epochs, three steps each
  double validation_loss;            // after them
};

const std::vector<GoldenRun>& golden_runs() {
  static const std::vector<GoldenRun> all = {
      {{{"architecture", "positional"}}, {4.63983145, 4.51321928, 4.33645328}, 5.17547081},
      {{{"architecture", "standard"}}, {4.69247449, 4.63556733, 4.55521309}, 5.7609395},
      {{{"architecture", "positional-direct"}}, {4.78432086, 4.6512371, 4.53194422}, 5.98656543},
      {{{"architecture", "standard-rope"}}, {4.69238806, 4.63530322, 4.55466889}, 5.75962855},
      {{{"architecture", "m0"}}, {4.69247449, 4.63556733, 4.55521309}, 5.7609395},
      {{{"architecture", "m1"}}, {4.69238793, 4.63557542, 4.55580961}, 5.76322058},
      {{{"architecture", "m2"}}, {4.63491272, 4.50221626, 4.3159861}, 5.10903827},
      {{{"architecture", "m3"}}, {4.64083188, 4.51121819, 4.32815369}, 5.14082892},
      {{{"architecture", "m4"}}, {4.63471293, 4.50185351, 4.31472724}, 5.10463383},
      {{{"architecture", "m5"}}, {4.63983145, 4.51321928, 4.33645328}, 5.17547081},
      {{{"task", "cumulative-min"}}, {0.763522646, 0.734865055, 0.700054684}, 0.740391333},
      {{{"task", "cumulative-max"}}, {0.823273222, 0.728377456, 0.628988349}, 0.645176026},
      {{{"task", "cumulative-median"}}, {0.660911666, 0.619155905, 0.570626667}, 0.571675071},
      {{{"task", "cumulative-max-subarray"}}, {3.12444325, 2.88920081, 2.58384693}, 3.50819819},
      {{{"task", "sort"}}, {0.7747791, 0.73062831, 0.681545324}, 0.717496333},
      {{{"task", "min-sum"}}, {2.56349384, 2.49037752, 2.39828366}, 2.69303409},
      {{{"task", "path"}}, {0.806000754, 0.798897042, 0.789027794}, 1.04286475},
      {{{"encoding", "binary"}}, {4.63858064, 4.50940412, 4.32903224}, 5.15769078},
      {{{"encoding", "sinusoidal"}}, {4.64026964, 4.51441442, 4.33967825}, 5.17995553},
      {{{"encoding", "random"}}, {4.67323092, 4.54522803, 4.37161106}, 5.73381315},
      {{{"encoding", "learned"}}, {4.67308131, 4.54517253, 4.37149467}, 5.73366841},
      {{{"architecture", "standard"}, {"variable-length", "true"}},
       {2.77874285, 2.72279056, 2.66317195},
       1.69118222},
      {{{"variable-length", "true"}}, {2.7383924, 2.61764122, 2.48638342}, 1.4834101},
      {{{"integers", "true"}, {"mlp-depth", "3"}},
       {4.82542827, 4.62079029, 4.39043447},
       2.85502947},
      {{{"optimiser", "adamw"}, {"weight-decay", "0.1"}, {"clip", "0.5"}},
       {4.63972764, 4.5111818, 4.32156017},
       5.1313739},
      {{{"schedule", "warmup-linear"},
        {"warmup-steps", "4"},
        {"data-seed", "7"},
        {"weight-seed", "8"}},
       {5.43615324, 5.41132394, 5.39228519},
       4.27567214},
  };
  return all;
}

RunConfig config_of(const GoldenRun& golden, const char* path) {
  RunConfig config = small_run();
  config.seed = 2;
  config.length = 4;
  config.depth = 2;
  config.samples = 60;
  config.epochs = 3;
  config.validate_every = 1;
  config.test_every = 0;
  config.path = path;
  for (const auto& [key, value] : golden.settings) set_field(config, key, value);
  validate(config);
  return config;
}

void expect_golden(const GoldenRun& golden, const char* path) {
  std::string trace = path;
  for (const auto& [key, value] : golden.settings) trace += " " + key + "=" + value;
  SCOPED_TRACE(trace);
  Run run(config_of(golden, path), 1);
  std::optional<EpochRecord> record;
  for (const double loss : golden.train_losses) {
    record = run.advance_epoch();
    ASSERT_TRUE(record);
    EXPECT_NEAR(record->train_loss, loss, tolerance * loss);
  }
  EXPECT_NEAR(*record->validation_loss, golden.validation_loss, tolerance * golden.validation_loss);
}

TEST(GoldenLosses, Folded) {
  for (const GoldenRun& golden : golden_runs()) expect_golden(golden, "folded");
}

TEST(GoldenLosses, Plain) {
  for (const GoldenRun& golden : golden_runs()) expect_golden(golden, "plain");
}

}  // namespace
}  // namespace posattn
