#include "posattn/bounds/certificate/certify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/training/run.h"
#include "posattn/training/small_run_test.h"

namespace posattn::bounds {
namespace {

using ::testing::HasSubstr;

CertifiedRun trained_run(const std::string& architecture) {
  RunConfig config = small_run();
  config.architecture = architecture;
  config.task = "cumulative-min";
  config.samples = 400;
  Run run(config, 1);
  while (!run.finished()) run.advance_epoch();
  return {"a run", config, run.model()};
}

CertifyOptions quick() {
  CertifyOptions options;
  options.steps = 60;
  options.draws = 300;
  options.fresh_samples = 1500;
  return options;
}

TEST(Certify, SaysWhatHoldsAndWhatWasMeasured) {
  for (const char* architecture : {"positional", "standard", "homogeneous"}) {
    SCOPED_TRACE(architecture);
    const CertifiedRun run = trained_run(architecture);
    CertifyOptions options = quick();
    options.clip = 2;
    const std::optional<Certificate> found = certify(run, options);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->samples, 400);
    EXPECT_GT(found->divergence, 0);
    EXPECT_GT(found->loss, 0);
    EXPECT_GT(found->loss_bound, found->loss);
    EXPECT_GT(found->bound, found->loss_bound);
    EXPECT_LE(found->bound, 4);  // b^2
    EXPECT_GT(found->bound, found->fresh_loss);
    EXPECT_GT(found->drawn.bound, found->drawn.training_loss);
    EXPECT_GT(found->best_of_ten.bound, found->best_of_ten.training_loss);
    EXPECT_GT(found->hold_out_bound, found->plain_fresh_loss);
    EXPECT_GT(found->simple.constant, found->simple.linear);

    options.threads = 3;
    const std::optional<Certificate> again = certify(run, options);
    EXPECT_EQ(found->bound, again->bound);
    EXPECT_EQ(found->best_of_ten.bound, again->best_of_ten.bound);
    EXPECT_EQ(found->best_of_ten.fresh_loss, again->best_of_ten.fresh_loss);
  }
}

TEST(Certify, NothingWhenStopped) {
  const std::atomic<bool> stop{true};
  CertifyOptions options = quick();
  options.stop = &stop;
  EXPECT_FALSE(certify(trained_run("positional"), options));
}

TEST(Certify, NothingWhenStoppedWhileNetworksAreDrawn) {
  std::atomic<bool> stop{false};
  int64_t drawn = 0;
  CertifyOptions options = quick();
  options.draws = 1000;
  options.threads = 1;
  options.stop = &stop;
  options.drawn = [&](int64_t networks) {
    drawn += networks;
    stop = true;
  };
  EXPECT_FALSE(certify(trained_run("positional"), options));
  EXPECT_LT(drawn, options.draws);
  options.stop = nullptr;
  drawn = 0;
  EXPECT_TRUE(certify(trained_run("positional"), options));
  EXPECT_EQ(drawn, all_draws(options));
}

std::string refusal(const CertifiedRun& run, const CertifyOptions& options = quick()) {
  try {
    check_certifiable(run, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.problem();
  }
  return "";
}

TEST(Certify, RefusesWhatItCannotProve) {
  const CertifiedRun good = trained_run("positional");
  CertifyOptions options = quick();
  options.samples = 400;
  EXPECT_EQ(refusal(good, options), "");
  options.samples = 30'000;
  EXPECT_THAT(refusal(good, options), HasSubstr("400 samples, not 30000"));

  CertifiedRun run = good;
  run.config.samples = 7;
  EXPECT_THAT(refusal(run), HasSubstr("7 samples"));
  run = good;
  run.config.fresh = true;
  EXPECT_THAT(refusal(run), HasSubstr("new samples every epoch"));
  run = good;
  run.config.variable_length = true;
  EXPECT_THAT(refusal(run), HasSubstr("several lengths"));
  run = good;
  run.config.from = "start.safetensors";
  EXPECT_THAT(refusal(run), HasSubstr("which may have seen the training set"));
  run = good;
  run.model.spec.causal = true;
  EXPECT_THAT(refusal(run), HasSubstr("causal"));
  run = good;
  run.model.spec.normalisation = Normalisation::before;
  EXPECT_THAT(refusal(run), HasSubstr("normalises"));
}

}  // namespace
}  // namespace posattn::bounds
